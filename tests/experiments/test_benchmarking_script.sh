#!/usr/bin/env bash
# test_benchmarking_script.sh: options, bad input and running out of memory
bench=${BUILD:-build}/benchmarking_script
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
tiny="--d-model 16 --d-ff 32 --layers 2 --heads 2 --vocab 50 --context 8"

expect() { # expect NAME STATUS PATTERN ARGUMENTS...
	local name=$1 status=$2 pattern=$3 got=0
	shift 3
	"$bench" "$@" >"$out/said" 2>&1 || got=$?
	if [ $got = "$status" ] && grep -q -e "$pattern" "$out/said"; then
		echo "ok - $name"
	else
		echo "not ok - $name: exit $got: $(tail -n 1 "$out/said")"
		failed=1
	fi
}

expect 'an unknown size' 2 'tiny.* is not one of small|medium' --size tiny
expect 'no size unless given' 0 '--size small|.*|2.7B$' --help
expect 'an unknown option' 2 'unknown option --sise' --sise small
expect 'an impossible shape' 2 'multiple of the number of heads' $tiny --heads 3
expect 'a missing dimension' 2 'at least 1' --layers 2
expect 'an unknown device' 2 "'tpu' is not one of auto" --device tpu
expect 'a norm without fast path' 2 'has no fast path' $tiny --norm layernorm
expect 'the other norm' 0 '^custom .*ok$' $tiny --norm layernorm \
	--fusion none --steps 2 --warmup 0
for mode in forward forward-backward train; do
	expect "mode $mode" 0 '^custom .*ok$' $tiny --mode $mode --steps 2 --warmup 0
done
expect 'bf16' 0 'custom .*bf16 .*ok$' $tiny --precision bf16 --steps 1
expect 'too large for any memory' 0 'oom: weights needs' \
	--size 2.7B --layers 1000 --d-ff 200000
if "$bench" $tiny --steps 1 --out "$out/x.tsv" &&
	grep -q '^# complete: yes' "$out/x.tsv" &&
	grep -q '^custom' "$out/x.tsv"; then
	echo "ok - the file is complete"
else
	echo "not ok - the file is complete"
	failed=1
fi
exit $failed
