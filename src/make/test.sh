#!/usr/bin/env bash
# test.sh BUILD TEST...: runs programs and scripts, and writes the results to
# BUILD/test-results.tsv; $SKIPPED names tests that cannot be compiled here
set -euo pipefail
export LC_ALL=C BUILD=$1
shift
limit=${TEST_TIMEOUT:-300}
mkdir -p "$BUILD/logs"
results=$BUILD/test-results.tsv
printf 'test\tcase\tresult\tseconds\n' >"$results.new"
run_test() {
	local name=${1#"$BUILD"/} status=0 start=$EPOCHREALTIME log shell=
	case $1 in *.sh) name=${name%.sh} shell=bash ;; esac
	log=$BUILD/logs/${name//\//-}.log
	: >"$log"
	UNWRITTEN_LOG=$PWD/$log timeout -k 5 "$limit" $shell "$1" >>"$log" 2>&1 \
		</dev/null || status=$?
	awk -v name="$name" -v status="$status" -v limit="$limit" \
		-v start="$start" -v end="$EPOCHREALTIME" \
		-f src/make/cases.awk "$log" >"$log.tsv"
	cat "$log.tsv" >>"$results.new"
	if grep -q "$(printf '\tfailed\t')" "$log.tsv"; then
		printf '  FAILED   %s (exit status %d):\n' "$name" "$status"
		sed 's/^/    /' "$log"
	else
		printf '  ok  %4d %s\n' "$(wc -l <"$log.tsv")" "$name"
	fi
}
for test in "$@"; do
	run_test "$test"
done
for test in ${SKIPPED-}; do
	printf '%s\t(all)\tskipped\t0\n' "$test" >>"$results.new"
done
mv -f "$results.new" "$results"
awk -F '\t' '
	NR > 1 { count[$3]++ }
	END {
		printf "%d passed, %d failed", count["passed"], count["failed"]
		if (count["skipped"])
			printf ", %d skipped", count["skipped"]
		print ""
		exit count["failed"] > 0 || NR < 2
	}' "$results"
