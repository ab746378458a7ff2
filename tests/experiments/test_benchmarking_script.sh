#!/usr/bin/env bash
# test_benchmarking_script.sh: options, bad input and running out of memory
. tests/experiments/expect.sh
bench() { # bench NAME STATUS PATTERN ARGUMENTS...
	expect "$1" "$2" "$3" benchmarking_script "${@:4}"
}
tiny="--d-model 16 --d-ff 32 --layers 2 --heads 2 --vocab 50 --context 8"

bench 'an unknown size' 2 'tiny.* is not one of small|medium' --size tiny
bench 'no size unless given' 0 '--size small|.*|10B$' --help
bench 'an unknown option' 2 'unknown option --sise' --sise small
bench 'an impossible shape' 2 'multiple of the number of heads' $tiny --heads 3
bench 'a missing dimension' 2 'at least 1' --layers 2
bench 'an unknown device' 2 "'tpu' is not one of auto" --device tpu
bench 'a norm without fused path' 2 'has no fused path' $tiny --norm layernorm
bench 'the other norm' 0 '^custom .*ok$' $tiny --norm layernorm \
	--fusion eager --steps 2 --warmup 0
for mode in forward forward-backward train; do
	bench "mode $mode" 0 '^custom .*ok$' $tiny --mode $mode --steps 2 --warmup 0
done
bench 'bf16' 0 'custom .*bf16 .*ok$' $tiny --precision bf16 --steps 1
bench 'too large for any memory' 0 'oom: weights needs' \
	--size 2.7B --layers 1000 --d-ff 200000
check 'a run into a file' "${BUILD:-build}/benchmarking_script" $tiny \
	--steps 1 --out "$out/x.tsv"
check 'the file is complete' grep -q '^# complete: yes' "$out/x.tsv"
check 'the file has the row' grep -q '^custom' "$out/x.tsv"
exit $failed
