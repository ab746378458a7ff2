#!/usr/bin/env bash
# test_ddp_programs.sh: naive_ddp and the benchmarks of data parallelism
. tests/experiments/expect.sh

overlap=ddp_overlap_individual_parameters_benchmarking
tiny='--device cpu --size small --context 4 --batch 1 --warmup 1 --steps 2'
for program in naive_ddp naive_ddp_benchmarking $overlap \
	minimal_ddp_flat_benchmarking ddp_bucketed_benchmarking; do
	expect "$program --help" 0 '^ *--ranks' $program --help
	expect "$program: unknown option" 2 'unknown option --rank' $program --rank 2
	expect "$program: too many ranks" 2 "65' is not\|at most 64 p" $program \
		--device cpu --ranks 65
	expect "$program: unknown transport" 2 "'pigeon' is not one of auto|ring" \
		$program --transport pigeon
	expect "$program: unknown wire" 2 "'fp8' is not one of fp32|bf16" \
		$program --wire fp8
done
expect 'no batch' 2 '1..4096' naive_ddp_benchmarking --batch 0
expect 'a negative bucket' 2 'mb -1: expected 0' ddp_bucketed_benchmarking \
	--device cpu --bucket-mb -1
expect 'a trace for no folder' 2 'cannot' $overlap --device cpu \
	--sweep timeline --trace /proc/none/t

differ() { # differ ARGUMENTS...: of the rows, the most weights that differ
	"${BUILD:-build}/naive_ddp" --device cpu --steps 2 --out "$out/table.tsv" \
		--force "$@" >"$out/said" 2>&1 || return 1
	column differ | sort -rn | head -n 1
}
check 'two ranks are one process' [ "$(differ --ranks 2)" = 0 ]
check 'four ranks in order are one process' \
	[ "$(differ --ranks 4 --transport owner --wire fp32)" = 0 ]
check 'a rank alone is one process' [ "$(differ --ranks 1 --wire fp32)" = 0 ]
expect 'naive, three ranks' 0 ' naive .* 3 .*ok$' naive_ddp_benchmarking $tiny \
	--ranks 3
expect 'flat, the owner' 0 ' flat .* owner .*ok$' \
	minimal_ddp_flat_benchmarking $tiny --transport owner
expect 'two nodes, or why not' 0 \
	'^ *1 Gbit/s .* flat .*\(ok\|skipped: .*\)$' minimal_ddp_flat_benchmarking \
	$tiny --sweep nodes --kind flat --wide
expect 'a way that has no sweep over nodes' 2 "'overlap' is not one of naive" \
	minimal_ddp_flat_benchmarking $tiny --sweep nodes --kind overlap
expect 'overlap, bf16 on the wire' 0 ' overlap .* bf16 .*ok$' $overlap $tiny \
	--wire bf16
expect 'a bucket for each parameter' 0 ' bucketed  *1e-06 .* 12 .*ok$' \
	ddp_bucketed_benchmarking $tiny --wire fp32 --bucket-mb 1e-6
expect 'sums in the optimizer' 0 ' bucketed .* optimizer  *3 .*ok$' \
	ddp_bucketed_benchmarking $tiny --wire bf16 --bucket-mb 0.1 --ranks 3 \
	--sums optimizer --wide
expect 'sums in an optimizer that is not fused' 2 'needs --fusion fused' \
	ddp_bucketed_benchmarking $tiny --sums optimizer --fusion eager
expect 'sums of too many' 2 '8 ranks at most' \
	ddp_bucketed_benchmarking $tiny --sums optimizer --ranks 9
expect 'one rank alone' 0 ' naive .* 1 .*ok$' naive_ddp_benchmarking $tiny \
	--ranks 1
expect 'the other sweeps of buckets' 0 ' bucketed .*ok$' \
	ddp_bucketed_benchmarking $tiny --sweep sizes
expect 'no blocks on a CPU' 0 ' bucketed .*skipped: collectives have no blocks' \
	ddp_bucketed_benchmarking $tiny --sweep ctas
expect 'a timeline' 0 ' overlap .*communication  *all-reduce .*ok$' $overlap \
	$tiny --sweep timeline --trace "$out/trace.json"
both_queues() {
	for rank in 0 1; do
		for queue in compute communication; do
			grep -q "\"pid\":$rank,.*\"name\":\"$queue\"" "$1" || return 1
		done
	done
}
check 'the trace has both queues of both ranks' both_queues "$out/trace.json"
if command -v python3 >/dev/null; then
	check 'the trace is JSON' python3 -m json.tool "$out/trace.json" "$out/json"
fi
exit $failed
