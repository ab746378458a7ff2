# scratch.sh: sourced by tests; makes an empty folder and goes there
set -u
. tests/base/check.sh
root=$PWD
scratch=$(mktemp -d || mktemp -d -p /tmp) || exit 1	# cd "" would stay here
trap 'rm -rf "$scratch"' EXIT
work=$scratch/"o'b \$x&y #1 %d \"z, (1)~\`;"
mkdir "$work" && cd "$work" || exit 1
unset MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES MAKE_LOCKED SANITIZE DEBUG
unset MACHINE COURSE
not() { ! "$@"; }
need_noweb() {
	[ -x "${NOWEB:-/usr/lib/noweb}/markup" ] || exit 77
}
document() { # noweb on standard input, with braces for the angle brackets
	sed 's/{{/<</g
	s/}}/>>/g' >writeup.nw
}
