#!/usr/bin/env bash
# test_awk.sh: every awk that is installed does what the others do
. tests/make/scratch.sh
need_noweb
everything() { # everything FOLDER: with the awk in FOLDER/bin
	(
		PATH=$PWD/$1/bin:$PATH
		mkdir -p "$1/code" "$1/made/tree"
		cp -r --parents "$root"/src/{base,make,experiments/tp_calcs.c} "$1/code"
		(cd "$1/code$root" && bash src/make/digest.sh)
		cp -r "$1/code$root"/build/{code,digest} "$1/made"
		bash "$root/src/make/tangle.sh" "$root/writeup.nw" "$1/made/tree"
		cd "$1/made"
		awk -f "$root/src/make/problems.awk" "$root/writeup.nw" >problems
		awk -v list=1 -f "$root/src/make/problems.awk" "$root/writeup.nw" >list
		awk -f "$root/src/make/help.awk" "$root/Makefile" >help
		find "$root/src" -name '*.c' | sort | xargs \
			awk -v device=cpu -f "$root/src/make/unwritten.awk" >unwritten
		[ -s problems ] && [ -s list ] && [ -s help ] &&
			[ -s digest/tp_calcs.cpu ]
	)
}
first=
for name in gawk mawk original-awk busybox; do
	path=$(command -v $name) || continue
	mkdir -p "$name/bin"
	ln -s "$path" "$name/bin/awk"
	check "$name runs every script" everything "$name"
	[ -z "$first" ] || check "$name writes what $first writes" \
		diff -r "$first/made" "$name/made"
	first=${first:-$name}
done
[ -n "$first" ] || exit 77
exit $failed
