# helpers.sh: a tiny document, ways to break it, and checks of what is said
set -u
[ -z "${PANDOC-}" ] || PATH=$(realpath "${PANDOC%/*}"):$PATH
for tool in "${NOWEB:-/usr/lib/noweb}/markup" pandoc; do
	command -v "$tool" >/dev/null || exit 77
done
unset WEAVE_DIR WEAVE_MODE SOURCE_DIGEST SOURCE_DATE_EPOCH
root=$(pwd)
weave=$root/src/weave/weave.sh
plots=$(pwd)/src/plots
tiny=$(pwd)/tests/weave/tiny.nw
scratch=$(mktemp -d || mktemp -d -p /tmp) || exit 1	# cd "" would stay here
trap 'rm -rf "$scratch"' EXIT
folder=$scratch/"o'b \$x&y #1 %d \"z, (1)~\`;"
mkdir "$folder" && cd "$folder" || exit 1
failed=0
make_table() {	# make_table MACHINE SCALE FWD
	mkdir -p "tables/$1"
	printf '# %s\n' 'checksum: none' 'table: bench' "machine: $1" "scale: $2" \
		'device: a test' 'date: 2026-11-21T00:50:00Z' \
		'digest: 0123456789abcdef' 'complete: yes' >"tables/$1/bench.tsv"
	printf '%s\t%s\t%s\t%s\t%s\n' size fwd_ms fwd_bound_ms bwd_ms status \
		small "$3" 5.0 20.0 ok large 30.0 15.0 60.0 ok \
		>>"tables/$1/bench.tsv"
	seal "tables/$1/bench.tsv"
}
seal() {	# seal TABLE
	local hash=$((0xcbf29ce484222325)) byte
	for byte in $(tail -n +2 "$1" | od -An -v -tu1); do
		hash=$(((hash ^ byte) * 0x100000001b3))
	done
	sed -i "1s/^# checksum: .*/# checksum: $(printf %016x "$hash")/" "$1"
}
make_document() {
	rm -rf tables figures build
	mkdir -p src/plots build/digest
	cp "$plots/style.gp" src/plots
	echo 0123456789abcdef >build/digest/bench.cpu
	echo 'load "src/plots/style.gp"; plot table using "fwd_ms":"bwd_ms"' \
		>src/plots/curve.gp
	make_table cpu course 10.0
	cp "$tiny" writeup.nw
}
ok() { echo "ok - $1"; }
not_ok() {
	echo "not ok - $1"
	sed 's/^/# /' said
	failed=1
}
finish() { exit $failed; }
lint() { bash "$weave" --lint writeup.nw >said 2>&1; status=$?; }
pdf() { bash "$weave" writeup.nw writeup.pdf 2>said >told; status=$?; }
line_of() { grep -n -F -m 1 -e "$1" writeup.nw | cut -d: -f1; }
edit() {
	sed -i "$1" "${2:-writeup.nw}"
	case ${2-} in *.tsv) seal "$2" ;; esac
}
add() { printf '\n%s\n' "$@" >>writeup.nw; }
expect() {	# expect NAME COMPLAINTS LINE TEXT
	if [ $status -eq 1 ] && [ "$(grep -c . said)" -eq "$2" ] &&
		grep -q "^writeup.nw:$3: .*$4" said; then
		ok "$1"
	else
		not_ok "$1 (status $status, expected line $3: $4)"
	fi
}
expect_good() {
	if [ $status -eq 0 ] && [ ! -s said ]; then ok "$1"; else not_ok "$1"; fi
}
