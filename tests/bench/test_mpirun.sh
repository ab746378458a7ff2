#!/usr/bin/env bash
# test_mpirun.sh: ranks that mpirun starts measure what forked ranks do
. tests/experiments/expect.sh
program=${BUILD:-build}/tests/bench/test_ranks
echo 'void *link_mpi(void); int main(void) { return link_mpi() != 0; }' \
	>"$out/alone.c"
$(sed -n 's/^CC := //p' build/config.mk) -std=gnu11 -Isrc -o "$out/alone" \
	"$out/alone.c" src/dist/mpi.c src/base/error.c
without_mpi() {
	local got=0
	"$@" "$out/alone" 2>"$out/said" || got=$?
	[ $got = 2 ] && grep -q 'one of 2 processes.*libopenmpi-dev' "$out/said"
}
check 'without MPI a program runs alone' "$out/alone"
check 'without MPI a launched rank says what it takes' without_mpi \
	env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
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
refused() { # refused STATUS PATTERN LINES COMMAND...: with the line, and not more
	local got=0
	"${@:4}" >"$out/said" 2>&1 || got=$?
	[ $got = "$1" ] && [ "$(grep -c -e "$2" "$out/said")" = "$3" ]
}
started() { timeout -k 5 60 mpirun --bind-to none --oversubscribe "$@"; }
check 'a job of another number of ranks' refused 2 \
	'^test_ranks: 2 ranks were started, and no .*: the first takes 3$' 2 \
	started -n 2 "$program" --device cpu --sweep fates --out "$out/none.tsv"
check 'leaves no table' [ ! -e "$out/none.tsv" ]
check 'a job of a program without ranks' refused 2 \
	'2 ranks were started, and no configuration takes as many' 2 \
	started -n 2 "${BUILD:-build}/fsdp_tp_calcs"
cat >"$out/as_mpich" <<'END'
#!/usr/bin/env bash
export PMI_RANK=$OMPI_COMM_WORLD_RANK PMI_SIZE=$OMPI_COMM_WORLD_SIZE
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
exec "$@"
END
chmod +x "$out/as_mpich"
allocated=(env SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_NPROCS=4 SLURM_PROCID=0)
two_ranks() { # two_ranks FILE COMMAND...: measures as two ranks
	started -n 2 "${@:2}" "$program" --device cpu --sweep sums \
		--out "$1" >"$out/said" 2>&1 && cmp <(rows 2 ring "$1") \
		<(rows 2 ring "$out/forked.tsv")
}
check 'two ranks of mpirun in an allocation of four' two_ranks "$out/two.tsv" \
	"${allocated[@]}"
check 'two ranks of another mpirun there' two_ranks "$out/too.tsv" \
	"${allocated[@]}" "$out/as_mpich"
forks() { # forks FILE VARIABLE...: does the program fork its ranks?
	env "${@:2}" "$program" --device cpu --sweep sums --out "$1" \
		>"$out/said" 2>&1 && cmp <(rows . ring "$1") \
		<(rows . ring "$out/forked.tsv")
}
check 'ranks are forked in a shell of salloc' forks "$out/salloc.tsv" \
	"${allocated[@]:1}"
check 'and in one of srun --pty' forks "$out/pty.tsv" "${allocated[@]:1}" \
	SLURM_STEP_NUM_TASKS=4 SLURM_PTY_PORT=40001 SLURM_TASK_PID=$$
check 'srun without PMIx' refused 2 '' 1 env SLURM_PROCID=0 \
	SLURM_STEP_NUM_TASKS=2 "$program" --sweep sums
check 'names the option' grep -q \
	'^test_ranks: srun started 2 tasks without PMIx.*: srun --mpi=pmix$' \
	"$out/said"
check 'a launcher of another MPI' refused 1 \
	'2 processes were started, and MPI sees 1' 1 env PMI_RANK=0 PMI_SIZE=2 \
	"$program" --sweep sums
exit $failed
