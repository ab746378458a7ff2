#!/usr/bin/env bash
# test_fp8_training.sh: fp8_training: options, tiny runs of all sweeps
. tests/experiments/expect.sh

expect 'help' 0 'fp8-scaling' fp8_training --help
expect 'an unknown scaling' 2 'not one of tensor-delayed|tensor|row|block' \
	fp8_training --fp8-scaling column
expect 'an unknown sweep' 2 'not one of speed|gemm|errors|learning' \
	fp8_training --sweep steps
for scaling in tensor-delayed tensor row block; do
	expect "a step, $scaling" 0 "^ *small *8 *$scaling *e5m2 .*ok\$" \
		fp8_training --device cpu --context 8 --batch 1 \
		--fp8-scaling $scaling --fp8-gradient e5m2
done
expect 'errors' 0 '^ *outlier among small *e4m3 *block .*ok$' fp8_training \
	--device cpu --sweep errors --fp8-scaling block
expect 'matmuls' 0 '^ *small *w2 *weight *row *e5m2 .*ok$' fp8_training \
	--device cpu --sweep gemm --fp8-scaling row --context 8 --batch 1
expect 'learning' 0 '^ *small *fp8 *block *e4m3 *3 *2 .*ok$' fp8_training \
	--device cpu --sweep learning --steps 2 --fp8-scaling block \
	--fp8-gradient e4m3
exit $failed
