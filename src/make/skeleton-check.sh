#!/usr/bin/env bash
# skeleton-check.sh [PROBLEM...]: puts solutions back one after the other, of all
# problems or of those named; each has to earn its points by its tests, and none
# before
set -euo pipefail
export LC_ALL=C
here=$PWD dir=$PWD/build/assignment kept= failed=0 later=()
rm -rf "$dir.new"
bash src/make/skeleton.sh "$dir.new"
if [ -d "$dir/build" ]; then
	rm -rf "$dir.new/build"
	mv "$dir/build" "$dir.new"
	(cd "$dir.new" && find Makefile src tests -type f | while read -r file; do
		! cmp -s "$file" "$dir/$file" || touch -r "$dir/$file" "$file"
	done)
	rm -rf "$dir"
fi
mv "$dir.new" "$dir"
mkdir -p "$dir/build/weave"
awk -F '\t' -v OFS='\t' 'NR == 1 { print "problem", "", "points" }
	NR > 1 { print $1, "", $2, "", $4, 1 }' "$dir/assignment.tsv" \
	>"$dir/build/weave/problems.tsv"
for name in tables claims; do
	echo "$name" >"$dir/build/weave/$name.tsv"
done
grade() { bash src/make/grade.sh yes >"build/$1" || true; }
score() { # score PROBLEM FILE: its points in a grading, and why
	awk -v name="$1" '$1 == name {
		points = $3
		sub(/^[^ ]+ +[0-9]+ +[^ ]+ +/, "")
		print points "\t" $0
	}' "build/$2"
}
put_back() { # put_back PROBLEMS: writes their solutions, and ours alone
	rm -rf build/with
	(cd "$here" && bash src/make/skeleton.sh "$dir/build/with" "$1") >/dev/null
	cp build/with/writeup.nw .
}
make_here() { # make_here GOAL...
	${MAKE:-make} "$@" >build/make.log 2>&1 ||
		{ tail -n 20 build/make.log >&2; exit 1; }
}
try() { # try PROBLEM ROUND
	local worth before after tests
	IFS=$'\t' read -r worth tests < <(awk -F '\t' -v name="$1" '
		$1 == name { print $2 "\t" $4 }' assignment.tsv) || true
	[ -n "$worth" ] || { echo "skeleton-check: no problem $1" >&2; exit 2; }
	before=$(score "$1" before)
	if [ "$2" = first ]; then
		kept="$kept $1"
		put_back "$kept"
	fi
	local test here_tests=() goals=()
	for test in $tests; do
		if [ -f "$test.sh" ]; then
			here_tests+=("$test.sh")
			goals=(all)
		else
			here_tests+=("build/$test")
			[ "${goals[*]}" = all ] || goals+=("build/$test")
		fi
	done
	make_here "${goals[@]}"
	OMP_WAIT_POLICY=passive bash src/make/test.sh build "${here_tests[@]}" \
		>build/test.log 2>&1 || true
	grade after
	after=$(score "$1" after)
	if [[ $2 = first && $after = 0* && $after = *'wait for'* ]]; then
		later+=("$1")
		return
	fi
	[[ $before = 0*'not yet written'* && ${after%%$'\t'*} = "$worth" ]] ||
		{ printf 'not '; failed=1; }
	printf 'ok - %s: 0 of %s points without, %s with it: %s\n' "$1" "$worth" \
		"${after%%$'\t'*}" "${after#*$'\t'}"
}
mapfile -t problems < <(sed '1d; s/\t.*//' "$dir/assignment.tsv")
cd "$dir"
if [ $# = 0 ]; then
	make_here all
	rm -f build/test-results.tsv
	${MAKE:-make} test >build/test.log 2>&1 || true
	awk -F '\t' '$3 == "failed" && $5 == "" {
			print "not ok - " $1 ": " $2 " names no function"
			bad = 1
		}
		END { exit bad }' build/test-results.tsv || failed=1
else
	problems=("$@")
fi
echo test >build/test-results.tsv
grade before
for problem in "${problems[@]}"; do
	try "$problem" first
done
for problem in "${later[@]}"; do
	try "$problem" second
done
exit $failed
