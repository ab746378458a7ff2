#!/usr/bin/env bash
# test_course_tests.sh: course_tests: made-up repositories, and those of COURSE
. tests/experiments/expect.sh
given=${COURSE-}
unset COURSE
command -v python3 >/dev/null || exit 77
# of several Pythons one that has pytest
python3 -c 'import pytest' 2>/dev/null ||
	! /usr/bin/python3 -c 'import pytest' 2>/dev/null || PATH=/usr/bin:$PATH
programs=${BUILD:-build}
package=$out/bin/site/libsystems        # beside a copy of the program
mkdir -p "$package"
cp "$programs/course_tests" "$out/bin"
BUILD=$out/bin
echo one >"$package/one.py"
edition() { # edition DIR DATE
	mkdir -p "$out/$1/tests"
	printf '## [unreleased] - yyyy-mm-dd\n\n## [9.1.2] - %s\n' "$2" \
		>"$out/$1/CHANGELOG.md"
	touch "$out/$1/tests/__init__.py"
	echo 'raise NotImplementedError' >"$out/$1/tests/adapters.py"
}
edition made 2031-02-03
cat >"$out/made/tests/test_ends.py" <<'END'
import os
def test_first(): pass
def test_ends_pytest(): os._exit(3)
def test_behind(): pass
END
cat >"$out/made/tests/test_four.py" <<'END'
import pytest
def test_adapters():
	assert "import ShardedOptimizer" in open("tests/adapters.py").read()
@pytest.mark.parametrize("n", [3])
def test_number(n): assert n == 4, "three is not four"
@pytest.mark.skip(reason="nobody asks")
def test_left_out(): pass
def test_rank():
	raise Exception("""
-- Process 0 terminated with the following error:
Traceback (most recent call last):
  File "tests/test_four.py", line 1, in rank
AssertionError: rank 0 differs
""")
END
echo 'import nobody_has_this' >"$out/made/tests/test_lacks.py"
run_made() { # run_made DIR ARGUMENTS...
	rm -f "$out/table.tsv"
	"$BUILD/course_tests" --course "$out/$1" --device cpu \
		--out "$out/table.tsv" "${@:2}" >"$out/said" 2>&1
}
ends() { # ends LINE...: edition, file, test and status of the rows
	paste -d ' ' <(column edition) <(column file) <(column test) \
		<(column status) | sed 's/2031 test_//' >"$out/rows"
	printf '%s\n' "$@" | diff - "$out/rows"
}
before=$(find "$out/made" | sort)
check 'a made-up edition' run_made made
if python3 -c 'import pytest' 2>/dev/null; then
	check 'each test has its row' ends 'ends.py test_first ok' \
		'ends.py test_ends_pytest failed: pytest ended with 3' \
		'ends.py test_behind skipped: an earlier test ended pytest' \
		'four.py test_adapters ok' \
		'four.py test_number[3] failed: AssertionError: three is not four' \
		'four.py test_left_out skipped: nobody asks' \
		'four.py test_rank failed: AssertionError: rank 0 differs' \
		"lacks.py - skipped: ModuleNotFoundError: No module named \
'nobody_has_this'"
else
	check 'a row says what is missing' \
		grep -q 'skipped: .*No module named pytest' "$out/table.tsv"
fi
check 'its version' [ "$(column version | sort -u)" = 9.1.2 ]
check 'nothing is written there' [ "$before" = "$(find "$out/made" | sort)" ]
of_one=$(column build | sort -u)
edition late 2032-02-03
cat >"$out/late/tests/test_late.py" <<END
import os, subprocess
def test_sleeps():
	child = subprocess.Popen(["sleep", "600"])
	open("$out/pids", "w").write(f"{os.getpid()} {child.pid}")
	child.wait()
END
gone() { # within ten seconds
	local i
	for ((i = 0; i < 100; i++)); do
		kill -0 $(cat "$out/pids" 2>/dev/null || echo 999999999) 2>/dev/null ||
			break
		sleep 0.1
	done
	rm -f "$out/pids"
	[ $i -lt 100 ]
}
echo two >"$package/one.py"
check 'another package' run_made late --limit 4
check 'is another build' eval '[ ${#of_one} = 12 ] &&
	[[ $(column build) =~ ^[0-9a-f]{12}$ ]] && [ "$(column build)" != "$of_one" ]'
if python3 -c 'import pytest' 2>/dev/null; then
	check 'a test that hangs' \
		[ "$(column status)" = 'failed: took more than 4 s' ]
	check 'is ended' gone
	"$BUILD/course_tests" --course "$out/late" --device cpu \
		>"$out/said" 2>&1 &
	while [ ! -s "$out/pids" ] && kill -0 $!; do sleep 0.1; done
	kill -9 $!
	check 'a test whose program is killed is ended too' gone
fi
edition twin 2031-05-06
: >"$out/twin/tests/test_none.py"
edition empty 2033-05-06
mkdir "$out/undated"
while IFS='|' read -r name pattern arguments; do
	expect "$name" 2 "$pattern" course_tests $arguments
	check "$name: one line" [ "$(wc -l <"$out/said")" = 1 ]
done <<END
no repository|no copy of the course's repository: expected --course|
a missing folder|no edition of the course in '/nowhere'|--course /nowhere
no changelog|no edition of the course in '$out/undated'|--course $out/undated
no tests|no tests/test_\*.py in '$out/empty'|--course $out/empty
no time|'0' is not an integer in 1..|--course $out/made --limit 0
END
expect 'one edition twice' 2 'are both of 2031' course_tests \
	--course "$out/made $out/twin"
mv "$package" "$out/elsewhere"
expect 'no package' 2 'site/libsystems is not there' course_tests \
	--course "$out/made"
BUILD=$programs
not_failed() { # but for the one that asks for bits
	rm -f "$out/table.tsv"
	COURSE=$given "$BUILD/course_tests" --out "$out/table.tsv" ||
		return 1
	paste <(column test) <(column status) | grep -P '\tfailed' |
		grep -v '^test_fsdp_correctness\[fp32\]' >"$out/lost"
	! cat "$out/lost" | grep .
}
if [ -n "$given" ] && [ -d "$BUILD/site/libsystems" ]; then
	check "the course's own tests" not_failed
fi
exit $failed
