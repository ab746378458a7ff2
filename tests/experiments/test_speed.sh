#!/usr/bin/env bash
# test_speed.sh: peaks, kernel_speed, layer_norm, rmsnorm_benchmarking, learning:
# options, tiny runs
. tests/experiments/expect.sh

for program in peaks kernel_speed layer_norm rmsnorm_benchmarking; do
	expect "$program --help" 0 '^ *--runs\|^ *--rows' $program --help
	expect "$program: unknown option" 2 'unknown option --sise' $program \
		--sise small
	expect "$program: unexpected argument" 2 "unexpected argument 'x'" \
		$program x
	expect "$program: unknown device" 2 "'tpu' is not one of" $program \
		--device tpu
done
expect 'no runs' 2 '1..1000' peaks --runs 0
expect 'an unknown size' 2 'tiny.* is not one of small' kernel_speed --size tiny
expect 'too wide a norm' 2 '1..8192' layer_norm --width 8193
expect 'an unknown sweep' 2 'not one of norms|model' layer_norm --sweep steps
expect 'weights for no folder' 2 'cannot' learning --save /proc/none/w
expect 'weights for a folder' 2 'not a regular file' learning --save "$out"

tiny_peaks="--device cpu --mebibytes 1 --dimension 65 --launches 3 --runs 2"
for quantity in copy memcpy read write fp32 launch; do
	expect "tiny peaks: $quantity" 0 "^ *$quantity .*ok\$" peaks \
		$tiny_peaks
done
"${BUILD:-build}/kernel_speed" --device cpu --size small --batch 1 \
	--context 17 --footprint 1 --parameters 1000 --runs 2 >"$out/kernels"
for operation in 'add ' 'rmsnorm forward *fused' 'softmax backward *eager' \
	'rope' 'adamw *fused' 'cross-entropy'; do
	check "tiny kernels: $operation" \
		grep -q "small *fp32 *$operation.*ok\$" "$out/kernels"
done
expect 'one row of one number' 0 '^ *1 *1 .*rmsnorm fused .*ok$' layer_norm \
	--device cpu --rows 1 --width 1 --repeats 1
one="rmsnorm_benchmarking --device cpu --rows 1 --repeats 1"
expect 'one row of one number, one kernel' 0 '^ *1 *1 .*by_width .*ok$' \
	$one --width 1
expect 'one variant' 0 '^ *1 *17 *bf16 .*again .*ok$' $one --width 17 \
	--precision bf16 --variant again
expect 'a width of the second sweep' 0 '^ *1 *50 *fp32 .*eager .*ok$' $one \
	--sweep widths --width 50 --precision fp32
expect 'an unknown kernel' 2 'eager|by_width' $one --variant tensor
check 'a run into a table' "${BUILD:-build}/layer_norm" --device cpu --rows 3 \
	--width 17 --repeats 2 --out "$out/x.tsv"
check 'the table is complete' grep -q '^# complete: yes' "$out/x.tsv"
check 'the table has three rows' [ "$(grep -c 'ok$' "$out/x.tsv")" = 3 ]
exit $failed
