#!/usr/bin/env bash
# test_torch_compile.sh: torch_compile: options, tiny runs
. tests/experiments/expect.sh

expect 'help' 0 '^ *--impl' torch_compile --help
expect 'unknown option' 2 'unknown option --sise' torch_compile --sise small
expect 'an unknown implementation' 2 "'triton' is not one of eager|alone|jit" \
	torch_compile --impl triton
expect 'no runs' 2 '1..1000' torch_compile --runs 0
expect 'a model in one step' 2 '2..1000' torch_compile --steps 1
expect 'an unknown sweep' 2 'not one of attention|model' torch_compile \
	--sweep norms
expect 'attention has no fused path here' 2 'no row has' torch_compile \
	--device cpu --impl fused

tiny='--device cpu --n 33 --d 16 --batch 2 --runs 2'
expect 'attention, eager' 0 '^ *fp32 .* eager .* ok$' torch_compile $tiny \
	--impl eager
rm -rf build/jit-cold
for precision in fp32 bf16; do
	"${BUILD:-build}/torch_compile" $tiny --precision $precision \
		--out "$out/$precision.tsv" >"$out/said" 2>&1 || cat "$out/said"
done
columns() { # columns FILE IMPL COLUMN...: of the row
	awk -F'\t' -v impl="$2" -v names="${*:3}" '/^#/ { next }
		!n++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["impl"] == impl { k = split(names, name, " ")
			for (i = 1; i <= k; i++) printf "%s ", $at[name[i]] }' "$1"
}
for precision in fp32 bf16; do
	table="$out/$precision.tsv"
	check "$precision: each operation alone is a kernel" [ "$(columns "$table" \
		alone fwd_operations fwd_kernels bwd_operations bwd_kernels)" = \
		'7 7 7 7 ' ]
	check "$precision: a group is a kernel" [ "$(columns "$table" jit \
		fwd_operations fwd_kernels bwd_operations bwd_kernels compiled)" = \
		'7 1 7 1 2 ' ]
	check "$precision: both counted the same bytes" [ "$(columns "$table" \
		alone fwd_MB bwd_MB)" = "$(columns "$table" jit fwd_eager_MB \
		bwd_eager_MB)" ]
done
check 'the cache of cold starts is gone' [ ! -e build/jit-cold ]

"${BUILD:-build}/torch_compile" --device cpu --sweep groups --n 8 --batch 2 \
	--out "$out/groups.tsv" >"$out/said" 2>&1
check 'the groups of a forward pass' [ "$(awk -F'\t' \
	'/ok$/ { printf "%s ", $5 }' "$out/groups.tsv")" = '5 12 7 6 3 6 8 ' ]

step='--device cpu --sweep model --size small --n 8 --batch 2 --steps 2'
"${BUILD:-build}/torch_compile" $step --out "$out/model.tsv" >"$out/said" 2>&1
check 'a model, three ways' [ "$(grep -c 'ok$' "$out/model.tsv")" = 3 ]
check 'a compiled step has the loss of operations alone' [ "$(columns \
	"$out/model.tsv" jit loss)" = "$(columns "$out/model.tsv" alone loss)" ]
env PATH=/nowhere "${BUILD:-build}/torch_compile" $tiny --impl jit \
	>"$out/said" 2>&1
check 'no compiler: the row is skipped' grep -q 'skipped: nothing is compiled' \
	"$out/said"
exit $failed
