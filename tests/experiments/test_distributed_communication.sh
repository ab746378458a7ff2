#!/usr/bin/env bash
# test_distributed_communication.sh: both programs: options, tiny runs
. tests/experiments/expect.sh
single=distributed_communication_single_node
multi=distributed_communication_multi_node

for program in $single $multi; do
	expect "$program --help" 0 '^ *--transport' $program --help
	expect "$program: unexpected argument" 2 "unexpected argument 'x'" \
		$program x
	expect "$program: unknown sweep" 2 "'none' is not one of" $program \
		--sweep none
	expect "$program: unknown format" 2 "'fp16' is not one of fp32|bf16" \
		$program --dtype fp16
	expect "$program: no ranks" 2 "'0' is not an integer in 1..64" $program \
		--ranks 0
	for list in 3 1e6 12, ,12 12,x '' 99999999999; do
		expect "$program: the sizes '$list'" 2 "is not a list of" $program \
			--device cpu --bytes "$list"
	done
	expect "$program: an unknown transport" 2 'no row has this transport' \
		$program --device cpu --transport pigeon
done
expect 'NCCL without GPUs' 2 'no row has this transport' $single --device cpu \
	--transport nccl
expect 'MPI has no bf16' 2 'no row has this transport' $single --device cpu \
	--transport mpi --dtype bf16

# of 1,001 and 3 elements in fp32, of 2,002 and 6 in bf16, which few of the
# numbers of ranks divide
tiny="--device cpu --bytes 4004,12 --runs 3"
while read -r transport dtype ranks; do
	expect "$transport, $dtype, $ranks ranks" 0 \
		"cpu *$transport *$dtype *$ranks *4004 .*ok\$" $single $tiny \
		--transport $transport --dtype $dtype --ranks $ranks
	check "$transport, $dtype, $ranks ranks: few elements" grep -q \
		"cpu *$transport *$dtype *$ranks *12 .*ok\$" "$out/said"
done <<END
ring fp32 1
ring fp32 2
ring fp32 3
ring bf16 4
owner fp32 3
alternate fp32 4
END
expect 'the other collectives' 0 'broadcast *cpu *ring *fp32 *3 *4004 .*ok$' \
	$single $tiny --ranks 3 --sweep collectives
for collective in reduce-scatter all-gather; do
	check "the other collectives: $collective" grep -q \
		"$collective *cpu *ring *fp32 *3 *12 .*ok\$" "$out/said"
done
for peer in mpi gloo; do
	expect "$peer, or why not" 0 "cpu *$peer *fp32 *2 .*\(ok\|skipped: .*\)$" \
		$single $tiny --transport $peer --ranks 2 --wide
done
place=$out/"o'b \$x&y #1 %d \"z, (1)~\`;"
mkdir "$place"
cp "${BUILD:-build}/$single" "$place"
rows_of_mpi() { "$1/$single" $tiny --transport mpi --ranks 2 | grep -c 'ok$'; }
check 'and as many rows of a program in an odd place' \
	[ "$(rows_of_mpi "${BUILD:-build}")" = "$(rows_of_mpi "$place")" ]
expect 'no GPU, no other arrays' 0 'skipped: without GPUs the sweep all_reduce' \
	$single $tiny --sweep hosts
expect 'two nodes, or why not' 0 "ring *fp32 *2 *2 .*\(ok\|skipped: .*\)$" \
	$multi $tiny --transport ring --ranks 2 --wide
check 'a run into a table' "${BUILD:-build}/$single" $tiny --ranks 2 \
	--transport owner --out "$out/x.tsv"
check 'the table is complete' grep -q '^# complete: yes' "$out/x.tsv"
exit $failed
