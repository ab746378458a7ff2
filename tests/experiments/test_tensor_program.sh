#!/usr/bin/env bash
# test_tensor_program.sh: tensor_parallel: options, tiny runs
. tests/experiments/expect.sh

tiny='--device cpu --size small --context 12 --warmup 1 --steps 2'
expect 'help' 0 '^ *--tp' tensor_parallel --help
expect 'unknown option' 2 'unknown option --pp' tensor_parallel --pp 2
expect 'too many ranks' 2 "'65' is not an integer in" tensor_parallel \
	--ranks 65
expect 'no fp16' 2 'fp16: expected fp32 or bf16' tensor_parallel --device cpu \
	--precision fp16
expect 'tokens that do not divide' 2 'tokens do not divide' tensor_parallel \
	--device cpu --tp 3 --dp 1 --context 8
expect 'sequences that do not divide' 2 'batch does not divide' \
	tensor_parallel --device cpu --tp 1 --dp 3
expect 'too few heads' 2 'fewer heads than ranks' tensor_parallel --device cpu \
	--size small --tp 16 --dp 1
expect 'unknown sweep' 2 "'pigeons' is not one of" tensor_parallel \
	--sweep pigeons

table() { # table ARGUMENTS...
	"${BUILD:-build}/tensor_parallel" $tiny --out "$out/table.tsv" --force "$@" \
		>"$out/said" 2>&1
}
alike() { # alike PART: all losses
	column loss | awk -v part="$1" 'NR == 1 { first = $1 }
		{ d = $1 - first }
		!(/^[0-9]/ && d*d <= part*part*first*first) { bad = 1 }
		END { exit bad || NR < 2 }'
}
grids() { # grids TP,DP ...: of the rows, in order
	[ "$(paste -d, <(column tp) <(column dp) | xargs)" = "$*" ]
}
try() { # try NAME PART ARGUMENTS...
	local name=$1 part=$2
	shift 2
	check "$name" table "$@"
	check "$name: peaks" near peak_MiB derived_MiB 0.01
	check "$name: optimizers" near optimizer_MiB optimizer_derived_MiB 0.01
	check "$name: bytes" near group_MB group_derived_MB 1e-6
	check "$name: losses" alike "$part"
}
try 'three ranks' 1e-3 --ranks 3
check 'grids of three ranks' grids 1,1 3,1
try 'four ranks' 1e-3 --ranks 4
check 'grids of four ranks' grids 1,1 1,2 2,1 1,4 4,1 2,2
try 'uneven heads' 1e-3 --size xl --ranks 2
try 'bf16' 2e-2 --precision bf16 --ranks 4
try 'norms gathered again' 1e-3 --norms gather
try 'bf16, fp32 on the wire' 2e-2 --precision bf16 --wire fp32
check 'one grid' table --tp 2 --dp 2 --graphs no
check 'it alone' grids 2,2
exit $failed
