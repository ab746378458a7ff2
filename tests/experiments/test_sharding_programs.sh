#!/usr/bin/env bash
# test_sharding_programs.sh: the programs on sharded state, gradients and weights
. tests/experiments/expect.sh

state=optimizer_state_sharding_accounting
tiny='--device cpu --size small --context 8 --batch 1 --warmup 1 --steps 2'
for program in $state fsdp_accounting; do
	expect "$program --help" 0 '^ *--strategy' $program --help
	expect "$program: unknown option" 2 'unknown option --stage' $program \
		--stage 1
	expect "$program: unknown strategy" 2 "'zero3' is not one of single|ddp" \
		$program --strategy zero3
	expect "$program: too far ahead" 2 "'5' is not an integer in -1..4" $program \
		--prefetch 5
	expect "$program: too many ranks" 2 "65' is not\|at most 64 p" $program \
		--device cpu --ranks 65
	expect "$program: unknown wire" 2 "'fp8' is not one of fp32|bf16" $program \
		--wire fp8
	expect "$program: sums of the eager path" 2 'needs --fusion fused' \
		$program --device cpu --sums optimizer --fusion eager
	for precision in fp16 tf32; do
		expect "$program: no $precision" 2 "$precision: expected fp32 or bf16" \
			$program --device cpu --precision $precision
	done
	expect "$program: unknown sweep" 2 "'pigeons' is not one of" $program \
		--sweep pigeons
done
expect 'a trace for no folder' 2 'cannot' fsdp_accounting --device cpu \
	--sweep timeline --trace /proc/none/t

table() { # table PROGRAM ARGUMENTS...
	local program=$1
	shift
	"${BUILD:-build}/$program" $tiny --out "$out/table.tsv" --force "$@" \
		>"$out/said" 2>&1
}
near() { # near COLUMN COLUMN: within a hundredth, in each row
	paste <(column "$1") <(column "$2") | awk '{ n++ }
		!($1 > 0 && $1 <= $2*1.01 && $1 >= $2*0.99) { bad = 1 }
		END { exit bad || !n }'
}
check 'three ranks hold what was derived' table fsdp_accounting --ranks 3
check 'peaks of three ranks' near peak_MiB derived_MiB
check 'parameters of three ranks' near parameter_MiB parameter_derived_MiB
check 'gradients of three ranks' near gradient_MiB gradient_derived_MiB
check 'optimizers of three ranks' near optimizer_MiB optimizer_derived_MiB
check 'two ranks, bf16' table fsdp_accounting --precision bf16
check 'peaks of two ranks, bf16' near peak_MiB derived_MiB
alike() { # alike: the losses of all who sum in one way
	[ "$(paste <(column sums) <(column loss) | sort -u | cut -f1 | xargs)" = \
		'comm optimizer' ]
}
check 'losses of two ranks, bf16' alike
check 'bf16 on the wire' table fsdp_accounting --precision bf16 --wire fp32
check 'gradients of another type' near gradient_MiB gradient_derived_MiB
expect 'one rank alone' 0 ' zero1 .* 1 .*ok$' $state $tiny --ranks 1 \
	--strategy zero1 --sweep times
check 'three moments' table $state
moments() {
	[ "$(column moment | sort | uniq -c | awk '{ print $1 $2 }' | xargs)" = \
		'5after 5before 5init' ]
}
check 'each strategy has three moments' moments
expect 'a timeline' 0 ' fsdp .*communication  *all-gather .*ok$' \
	fsdp_accounting $tiny --sweep timeline --trace "$out/trace.json"
if command -v python3 >/dev/null; then
	check 'the trace is JSON' python3 -m json.tool "$out/trace.json" "$out/json"
fi
exit $failed
