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
still=$BUILD/logs/standstills
: >"$still"
watch_clocks() {
	local day up last_day=$EPOCHSECONDS last_up
	read -r last_up _ </proc/uptime
	while sleep 0.5; do
		day=$EPOCHSECONDS
		read -r up _ </proc/uptime
		if ((day - last_day > 5 || ${up%.*} - ${last_up%.*} > 5)); then
			date '+%F %T' >>"$still"
		fi
		last_day=$day last_up=$up
	done
}
if [ -r /proc/uptime ]; then
	watch_clocks >/dev/null 2>&1 &
	watch=$!
	trap 'kill $watch' EXIT
fi
run_test() {
	local tries before
	for tries in 1 2 3; do
		before=$(wc -l <"$still")
		try_test "$1"
		if [ -z "$failed" ] || [ $tries = 3 ]; then
			break
		fi
		sleep 1
		if [ "$before" = "$(wc -l <"$still")" ]; then
			break
		fi
		printf '  again    %s: the machine stood still while it failed\n' "$name"
	done
	cat "$log.tsv" >>"$results.new"
	if [ -n "$failed" ]; then
		printf '  FAILED   %s (exit status %d):\n' "$name" "$status"
		sed 's/^/    /' "$log"
	else
		printf '  ok  %4d %s\n' "$(wc -l <"$log.tsv")" "$name"
	fi
}

try_test() { # sets name, log, status, failed
	local start=$EPOCHREALTIME shell=
	status=0 name=${1#"$BUILD"/}
	case $1 in *.sh) name=${name%.sh} shell=bash ;; esac
	log=$BUILD/logs/${name//\//-}.log
	: >"$log"
	UNWRITTEN_LOG=$PWD/$log timeout -k 5 "$limit" $shell "$1" >>"$log" 2>&1 \
		</dev/null || status=$?
	awk -v name="$name" -v status="$status" -v limit="$limit" \
		-v start="$start" -v end="$EPOCHREALTIME" \
		-f src/make/cases.awk "$log" >"$log.tsv"
	failed=$(grep -m 1 "$(printf '\tfailed\t')" "$log.tsv" || true)
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
