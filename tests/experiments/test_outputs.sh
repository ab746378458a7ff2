#!/usr/bin/env bash
# test_outputs.sh: files of others, full disks, killed runs, closed outputs
. tests/experiments/expect.sh
build=${BUILD:-build}
table="$out/x.tsv"
ring() { # ring NAME STATUS PATTERN ARGUMENTS...
	expect "$1" "$2" "$3" alternate_ring_all_reduce "${@:4}"
}
good() { check "$1" "$build/alternate_ring_all_reduce" "${@:2}"; }
one_line() { check "$1: one line" [ "$(wc -l <"$out/said")" = 1 ]; }
none_left() { check "$1: no partial file" [ ! -e "$table.partial" ]; }
printf '# build.mk: rules\nall:\n' >"$out/build.mk"
printf 'a;b 1\nc 2\nd\n' >"$out/list"
cp "$out/build.mk" "$out/kept"
profile='nsys_profile --size small --context 64'
while read -r command; do
	name="another kind for ${command%% *} ${command##* --}"
	expect "${name% *}" 2 '(--force replaces it)' ${command% *} \
		"$out/${command##* }"
	one_line "${name% *}"
done <<END
alternate_ring_all_reduce --out build.mk
$profile --trace build.mk
$profile --sweep kernels --folded build.mk
$profile --sweep timeline --folded list
$profile --snapshot build.mk
learning --save build.mk
END
ln -s loop "$out/loop"
expect 'a link to itself' 2 'cannot write' learning --save "$out/loop"
check 'and it stays' cmp "$out/build.mk" "$out/kept"
check 'nothing lies beside it' [ ! -e "$out/build.mk.partial" ]
good 'unless it is forced' --out "$out/build.mk" --force
good 'a new folder is made' --out "$out/new/folder/x.tsv"
ring 'a file is no folder' 2 'Not a directory' --out "$out/list/x.tsv"
ring 'a directory is no table' 2 'not a regular file' --out "$out/new"
ring 'a new folder is no table' 2 'not a regular file' --out "$out/newer/"
if [ "$(id -u)" != 0 ]; then
	: >"$out/secret"
	chmod 0 "$out/secret"
	ring 'what cannot be read stays' 2 'cannot read' --out "$out/secret"
fi
echo 'half a row' >"$table.partial"
good 'a killed run left its file' --out "$table"
none_left 'it is taken over'
cp "$table" "$out/kept"
good 'a finished table' --out "$table"
same_rows() { cmp <(grep -v '^#' "$table") <(grep -v '^#' "$out/kept"); }
check 'keeps its rows' same_rows
"$build/tp_calcs" --out "$out/calcs.tsv"
exec 9<"$table"
flock 9
ring 'a table that another program writes' 2 'another program' --out "$table"
ring 'by force' 2 'another program' --out "$table" --force
exec 9<&-
expect 'a table of another program' 2 'table of alternate_ring_all_reduce, ' \
	tp_calcs --out "$table"
expect 'a table of another sweep' 2 'it is a table of tp_calcs' tp_calcs \
	--sweep curve --out "$out/calcs.tsv"
sed -i '/^# date/s/: 2/: 1/' "$table"
ring 'a table edited by hand' 2 'not those that were written' --out "$table"
cp "$out/kept" "$table"
rm "$table"
(
	trap '' XFSZ
	ulimit -f 1
	"$build/alternate_ring_all_reduce" --out "$table" 2>&1
	echo "status $?"
) | cat >"$out/said"
check 'a full disk is an error' grep -q '^status 1$' "$out/said"
check 'and is named' grep -q "cannot write $table: File too large" "$out/said"
none_left 'a full disk'
check 'the table is not complete' grep -q '^# complete: no' "$table"
check 'and rows before stay' grep -q 'ok$' "$table"
good 'and are taken over' --out "$table"
check 'until all is there' same_rows
fails_to() { # fails_to FILE COMMAND...: exit status 1, one line
	local got=0
	"$build/${@:2}" >"$1" 2>"$out/said" || got=$?
	[ $got = 1 ] && grep -q 'cannot write standard output' "$out/said" &&
		[ "$(wc -l <"$out/said")" = 1 ]
}
closed() { ! "$build/$@" >&- 2>"$out/said" && grep -q 'standard' "$out/said"; }
for command in alternate_ring_all_reduce 'tp_calcs --help' \
	'parity tests/golden/tiny.safetensors --device cpu'; do
	check "closed: $command" closed $command
	[ ! -c /dev/full ] || check "full: $command" fails_to /dev/full $command
done
check 'nothing to print is no error' eval \
	'"$build/alternate_ring_all_reduce" --out "$table" --force >&-'
check 'and the table is whole' grep -q '^# complete: yes' "$table"
expect 'a name over two lines' 2 'no\\nsuch\\x1b' parity $'no\nsuch\e[2J'
one_line 'a name over two lines'
ring 'an unknown option over two' 2 'a\\nb' $'--a\nb'
one_line 'an option over two lines'
loader=$(ldd "$build/tp_calcs" | sed -n 's,^[ \t]*\(/[^ ]*/ld[^ ]*\).*,\1,p')
started() { env -u OMP_WAIT_POLICY "$@" >"$out/told" 2>"$out/said"; }
if [ -x "$loader" ]; then
	check 'the loader starts a program' started "$loader" "$build/tp_calcs" \
		--out "$out/loaded.tsv"
	check 'which knows its digest' grep -q "^# digest: $(cat \
		"$build/digest/tp_calcs.cpu" 2>/dev/null || echo unknown)" \
		"$out/loaded.tsv"
fi
# an old valgrind lacks instructions of a new processor, and says so
under_valgrind() {
	{ started valgrind "$@"; } 2>/dev/null ||
		grep -q 'Unrecognised instruction' "$out/said"
}
if command -v valgrind >/dev/null && [[ $build != *asan* ]]; then
	check 'valgrind starts a program' under_valgrind "$build/tp_calcs" --help
	check 'and keeps it' grep -q 'ERROR SUMMARY' "$out/said"
fi
exit $failed
