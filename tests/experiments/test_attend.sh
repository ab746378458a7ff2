#!/usr/bin/env bash
# test_attend.sh: flash_benchmarking and pytorch_attention: options and tiny runs
. tests/experiments/expect.sh

for program in flash_benchmarking pytorch_attention; do
	expect "$program --help" 0 '^ *--d ' $program --help
	expect "$program: unknown option" 2 'unknown option --sise' $program \
		--sise small
	expect "$program: no queries" 2 '1..1048576' $program --n 0
	expect "$program: too many sequences" 2 '1..1024' $program --batch 1025
	expect "$program: unknown study" 2 'is not one of' $program --study steps
done
tiny='--device cpu --precision fp32 --n 33 --d 16'
for variant in naive tiles; do
	expect "$variant" 0 "^ *fp32 .* $variant .* ok\$" flash_benchmarking $tiny \
		--runs 1 --variant $variant
done
for variant in rows planes wgmma narrow wide split hopper hopper-any; do
	expect "$variant is a GPU's" 0 "^ *fp32 .* $variant .*skipped: no kernel" \
		flash_benchmarking $tiny --runs 1 --variant $variant
done
expect 'an unknown variant' 2 'rows|.*|split|.*|naive' flash_benchmarking \
	--variant hoper
expect 'two passes by matrices' 0 '^ *fp32 .* backward .* ok$' \
	pytorch_attention --device cpu --n 33 --d 16 --batch 2 --passes 2
exit $failed
