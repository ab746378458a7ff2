#!/usr/bin/env bash
# test_results.sh: how results are read, and problems graded
. tests/make/scratch.sh
cases() { # cases STATUS: the cases of standard input, as "name result "
	awk -v name=t -v status="$1" -v limit=9 -f "$root/src/make/cases.awk" |
		cut -f 2,3 | tr '\t\n' '  '
}
gives() { [ "$1" = "$2" ]; }
ran='[ RUN      ] a
[ RUN      ] b'
ok='[       OK ] a'
check 'a case that passed, a case that crashed' gives \
	"$(printf '%s\n' "$ran" "$ok" | cases 1)" 'a passed b failed '
check 'failures count wherever they stand' gives \
	"$(printf '%s\n' '[  FAILED  ] b' "$ran" "$ok" '[       OK ] b' |
	cases 1)" 'b failed a passed '
check 'a bad exit is a failure' gives \
	"$(printf '%s\n' '[ RUN      ] a' "$ok" | cases 3)" \
	'a passed (exit status 3) failed '
check 'silence is one case' gives "$(cases 0 </dev/null)" '(all) passed '
check 'a test that hangs is stopped' gives "$(cases 124 </dev/null)" \
	'(stopped after 9 seconds) failed '
check 'one that is killed sooner did not hang' gives \
	"$(cases 137 </dev/null)" '(exit status 137) failed '
check 'a test can be skipped' gives "$(cases 77 </dev/null)" '(all) skipped '
check 'scripts are read too' gives \
	"$(printf '%s\n' 'ok - x y' 'not ok 2 - z' 'ok - w # SKIP no GPU' |
	cases 1)" 'x y passed z failed w skipped '
mkdir built
cat >built/stands.sh <<'END'
[ ! -e "$BUILD/stood" ] || exit 0
touch "$BUILD/stood"
kill -STOP -- -$GROUP
sleep 8
kill -CONT -- -$GROUP
exit 1
END
echo 'echo tried >>"$BUILD/tries"; exit 1' >built/fails.sh
(cd "$root" && SKIPPED= built=$work/built setsid -w bash -c 'GROUP=$$ exec bash \
	src/make/test.sh "$built" "$built/stands.sh" "$built/fails.sh"') >said 2>&1
check 'a standstill excuses a failure' grep -q 'again *stands: the machine' said
check 'and the test counts once' grep -q '^1 passed, 1 failed$' said
check 'a failure by itself is one' gives "$(wc -l <built/tries)" 1
document <<'END'
# Not one {#sec-intro}
## Problem (p): {braces} {#p .problem tables="p p-more" tests="tests/t"}
{{code}}=
## No {#no tables="no"}
@
```
## No {#no tables="no"}
```
### Extra {#extra tables="extra"}
END
awk -f "$root/src/make/problems.awk" writeup.nw >said
check 'only headings count' gives "$(grep -c TARGETS said)" 2
check 'tables are found' grep -qx 'TABLES_p := p p-more' said
check 'tests are found' grep -qx 'TESTS_p := tests/t' said
check 'what is no problem can have tables' \
	grep -qx 'TABLES_extra := extra' said
check 'with their titles' gives "$(awk -v list=1 \
	-f "$root/src/make/problems.awk" writeup.nw | sed -n '1s/  */ /gp')" \
	' p Problem (p): {braces}'
mkdir -p build/weave src/weave src/ops/cuda
cp -r "$root/src/make" src
results() { printf '%s\n' 'test case result s' "$@" | tr ' ' '\t'; }
results 'tests/t a passed 0' 'tests/t b passed 0' >build/test-results.tsv
results 'fsdp h100 yes fresh d' 'tp_calcs h100 yes stale d' \
	>build/weave/tables.tsv
results '9 fsdp recorded yes t' >build/weave/claims.tsv
results 'fsdp x 15 fsdp tests/t 7' 'tp_calcs x 4 tp_calcs tests/t 8' \
	>build/weave/problems.tsv
export COURSE_POINTS=19
bash src/make/grade.sh yes >said
check 'a stale table is no error' gives $? 0
check 'all parts held' grep -q '^fsdp  *15  15 ' said
check 'a stale table takes its share' grep -q '^tp_calcs  *4  2 ' said
check 'points are added' grep -q '^score: 17 of 19 points' said
lost() { COURSE_POINTS=20 bash src/make/grade.sh yes >said; }
check 'a point that is missing is noticed' not lost
check 'and told' grep -q 'have 19 points, the course 20$' said
results 'fsdp x 15 fsdp tests/t 7' 'own x 0 - tests/t 8' \
	>build/weave/problems.tsv
sed -i 's/\t-\t/\t\t/' build/weave/problems.tsv
export COURSE_POINTS=15
check 'a problem of one'"'"'s own needs its heading only' eval \
	'bash src/make/grade.sh yes | grep -q "^own  *0  0  *tests: 2 passed"'
results 'fsdp x 15 fsdp tests/t 7' >build/weave/problems.tsv
check 'nothing lost' eval 'bash src/make/grade.sh yes | grep -q "15 of 15"'
grade() { bash src/make/grade.sh yes >said; }
check 'is no error' grade
results 'fsdp h100 no fresh d' >build/weave/tables.tsv
check 'an incomplete table is one' not grade
results 'fsdp h100 yes fresh d small' >build/weave/tables.tsv
bash src/make/grade.sh yes >said
check 'a smaller scale is said' grep -q '^fsdp .* 1 of 1 fresh, 1 scaled' said
results 'fsdp h100 yes fresh d' >build/weave/tables.tsv
results '9 fsdp recorded no t' >build/weave/claims.tsv
check 'and a false claim' not grade
results >build/weave/claims.tsv
results 'tests/t a passed 0' 'tests/t b failed 0' >build/test-results.tsv
check 'and a failed test' not grade
results 'tests/u a passed 0' >build/test-results.tsv
check 'and one that did not run' not grade
results 'tests/t a passed 0' >build/test-results.tsv
check 'and nothing else' grade
printf '%s\t' tests/t b failed 0 tp_calcs >>build/test-results.tsv
check 'what waits for another problem costs nothing' grade
check 'and is told' grep -q '1 wait for tp_calcs' said
sed -i.bak 2d build/test-results.tsv
check 'but something has to pass' not grade
mv build/test-results.tsv.bak build/test-results.tsv
printf '\tunwritten("%s",\n\t\t"p %s");\n' k fsdp >src/ops/cuda/x.cu
check 'without a GPU kernels cost nothing' grade
printf '\tunwritten("%s",\n\t\t"p %s");\n' f fsdp >src/x.c
check 'what is not written fails' not grade
check 'and earns nothing' grep -q '^fsdp  *15  0 *not yet written: f$' said
rm src/x.c
check 'once it is written all is well' grade
echo 'exit 1' >src/weave/weave.sh # build/weave stays as it is, and good
check 'but not if the document does not weave' not bash src/make/grade.sh no
exit $failed
