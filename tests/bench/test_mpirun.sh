#!/usr/bin/env bash
# test_mpirun.sh: ranks that mpirun starts measure what forked ranks do
. tests/experiments/expect.sh
program=${BUILD:-build}/tests/bench/test_ranks
export OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
expect 'without MPI a launched rank says what it takes' 2 libopenmpi-dev \
	rmsnorm_jvp
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
if ! command -v mpirun >/dev/null || ! ldd "$program" 2>/dev/null | grep -q mpi
then
	echo 'ok - ranks of mpirun # SKIP Open MPI or the program is missing'
	exit $failed
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export ASAN_OPTIONS=detect_leaks=0
launch() { # launch RANKS ARGUMENTS...
	timeout -k 5 60 mpirun -n "$1" --bind-to none --oversubscribe \
		"$program" --device cpu "${@:2}" >"$out/said" 2>"$out/complaints"
}
sums() { launch "$1" --sweep sums --out "$out/sums.tsv"; }
rows() { grep -P "^$1\t$2" "$3" | sort; }
same_rows() { # same_rows RANKS: ring rows as forked, MPI's sums as the ring's
	cmp <(rows "$1" ring "$out/sums.tsv") <(rows "$1" ring "$out/forked.tsv") &&
		cmp <(rows "$1" ring "$out/sums.tsv") \
			<(rows "$1" mpi "$out/sums.tsv" | sed 's/\tmpi\t/\tring\t/')
}
"$program" --device cpu --sweep sums --out "$out/forked.tsv"
for ranks in 2 3; do
	check "$ranks ranks of mpirun" sums $ranks
	check "$ranks ranks: what takes others is left out, once" \
		[ "$(grep -c 'left out' "$out/complaints")" = 1 ]
	check "$ranks ranks measure what forked ones do" same_rows $ranks
done
check 'ranks print nothing on standard output' [ ! -s "$out/said" ]
check 'the table is not complete' grep -q '^# complete: no' "$out/sums.tsv"
"$program" --device cpu --sweep sums --out "$out/sums.tsv"
check 'until the rest is there' grep -q '^# complete: yes' "$out/sums.tsv"
check 'with all rows' [ "$(grep -c ok$ "$out/sums.tsv")" = 12 ]
launch 2 --sweep sums
check 'one rank prints the table' [ "$(grep -c '^ranks' "$out/said")" = 1 ]
lose() { # lose FATE PATTERN: does the job end, say that, and keep the row?
	local status=0
	rm -f "$out/fates.tsv"
	launch 3 --sweep fates --fate "$1" --out "$out/fates.tsv" || status=$?
	[ $status != 0 ] && [ $status != 124 ] && grep -q "$2" "$out/complaints" &&
		grep -qP '^3\tnone\t42042\tok' "$out/fates.tsv"
}
check 'a rank that leaves' lose leaves ''
check 'a rank that is killed' lose killed 'signal 9'
check 'a rank that is killed in a collective' lose in 'signal 9'
check 'a rank that is stopped' lose stopped \
	'rank [01]: all-reduce 12 (round 10, .*has not ended after 1 s'
check 'a rank without memory' lose 'runs out' \
	'rank 2: out of memory: far too much needs'
export SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2
expect 'a launcher of another MPI' 1 '2 processes were started, and MPI sees 1' \
	tests/bench/test_ranks --sweep sums
exit $failed
