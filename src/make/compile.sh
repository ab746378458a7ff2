#!/usr/bin/env bash
# compile.sh SOURCE COMMAND...: runs COMMAND; on failure, names writeup.nw lines
set -euo pipefail
source=$1
shift
mkdir -p build
log=$(mktemp build/compile.XXXXXX)
trap 'rm -f "$log"' EXIT
if "$@" 2>"$log"; then
	cat "$log" >&2
	if grep -q '(C75' "$log"; then
		while [ $# -gt 1 ]; do
			[ "$1" != -o ] || rm -f "$2"
			shift
		done
		echo "$source: each wgmma waits for the one before (C75...)" >&2
		exit 1
	fi
	exit 0
fi
case $source in build/L/*) cat "$log" >&2; exit 1 ;; esac
[ -x "${NOWEB:-/usr/lib/noweb}/markup" ] || { cat "$log" >&2; exit 1; }
mkdir -p build
exec 9>build/L.lock
flock 9 || true # make has warned of a file system without locks
bash src/make/tangle.sh --lines writeup.nw build/L || {
	cat "$log" >&2
	exit 1
}
command=()
while [ $# -gt 0 ]; do
	case $1 in
	"$source") command+=("build/L/$1") ;;
	-Isrc | -I.) command+=("-Ibuild/L/${1#-I}") ;;
	-MMD | -MP) ;;
	-o) command+=(-o /dev/null); shift ;;
	*) command+=("$1") ;;
	esac
	shift
done
if "${command[@]}"; then # only the plain file fails
	cat "$log" >&2
fi
exit 1
