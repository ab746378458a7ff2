#!/usr/bin/env bash
# test_slurm.sh: what the README says of Slurm, on a Slurm of two nodes
. tests/experiments/expect.sh
program=${BUILD:-build}/fsdp_accounting
ranks_program=${BUILD:-build}/tests/bench/test_ranks
skip() {
	echo "ok - Slurm # SKIP $1"
	exit 0
}
if [ "${1-}" != started ]; then
	ldd "$program" 2>/dev/null | grep -q mpi || skip 'no MPI'
	case $program in *asan*) skip 'sanitizers' ;; esac
	status=0
	timeout --foreground 240 bash tests/bench/slurm.sh bash "$0" started ||
		status=$?
	[ $status != 77 ] || skip 'no Slurm, or no namespaces'
	[ $status = 0 ] || exit $status
	left() { grep -lsz ' [2]7183$' /proc/[0-9]*/cmdline | wc -l; }
	within_20_s() { # within_20_s COMMAND...: does it come true?
		for _ in $(seq 200); do
			! "$@" || return 0
			sleep 0.1
		done
		return 1
	}
	none_left() { [ "$(left)" = 0 ]; }
	bash tests/bench/slurm.sh bash -c "touch $out/started; sleep 27183" \
		>/dev/null 2>&1 &
	script=$!
	check 'a Slurm that lasts has started' within_20_s [ -e "$out/started" ]
	kill -TERM $script
	check 'and ends with its script' within_20_s none_left
	exit $failed
fi
. tests/bench/readme.sh
export OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
from_readme '#!' '    build.fsdp_accounting' >"$out/job.sh"
check 'the README has a batch file' grep -q '^#SBATCH --nodes=2 ' "$out/job.sh"
of_readme() { # of_readme COMMAND: a batch file with the README's srun
	sed "s#$program.*#$1#" "$out/job.sh" >"$out/other.sh"
	echo "$out/other.sh"
}
submit() { # submit OPTION... FILE ARGUMENT...: sets job
	job=$(sbatch --parsable --output="$out/said" "$@")
}
ends() { # ends STATE: does the job end so, and leave no process behind?
	while squeue --noheader --jobs "$job" 2>/dev/null | grep -q .; do
		sleep 0.2
	done
	scontrol show job "$job" >"$out/job"
	grep -q "JobState=$1 " "$out/job" && [ "$(running)" = 0 ] ||
		{ head -n 20 "$out/said"; grep -o 'JobState=.*' "$out/job"; return 1; }
}
running() { # how many processes of steps there are
	grep -lsz '^SLURM_STEP_NUM_TASKS=' /proc/[0-9]*/environ | wc -l
}
become() { # become N: waits until so many processes run
	for _ in $(seq 200); do
		[ "$(running)" -lt "$1" ] || return 0
		sleep 0.1
	done
	return 1
}
for tasks in 2 16; do
	rm -f "$out/table.tsv"
	submit --ntasks-per-node=$((tasks / 2)) "$out/job.sh" "${few[@]}" \
		--prefetch 1 --sums comm
	check "a job of $tasks tasks" ends COMPLETED
	check "$tasks ranks have run" [ "$(rows "$out/table.tsv")" -ge 1 ]
	check "as $tasks ranks" [ "$(column ranks | sort -u)" = $tasks ]
	check "and joined" [ "$(rows "$out/table.tsv")" = \
		"$(column via | grep -c ring)" ]
done
submit --ntasks-per-node=1 "$(of_readme 'printenv CUDA_VISIBLE_DEVICES')"
check 'a job that looks at its GPUs' ends COMPLETED
check 'a task has those of its node' \
	[ "$(sort -u "$out/said")" = 0,1,2,3,4,5,6,7 ]
submit --ntasks=3 --ntasks-per-node=2 "$(of_readme "$ranks_program --device cpu \
--sweep fates --fate in --out $out/table-fates.tsv")"
check 'a job that loses a rank fails' ends FAILED
check 'with the status of a signal' \
	grep -qE 'ExitCode=(137|143):0' "$out/job"
check 'a line names the task' grep -q 'task 2: Killed' "$out/said"
check 'the row before is kept' \
	grep -qP '^3\tnone\t42042\tok' "$out/table-fates.tsv"
long=(--ntasks-per-node=1 "$out/job.sh" "${few[@]}" --size xl --steps 1000)
submit "${long[@]}"
check 'a job that lasts' become 2
scancel "$job"
check 'is cancelled' ends CANCELLED
check 'a line says that it was' grep -q "JOB $job .*CANCELLED" "$out/said"
check 'rows of other jobs are kept' [ "$(rows "$out/table.tsv")" -ge 1 ]
submit "${long[@]}"
limited=$job
check 'a job of a time limit' become 2
scontrol update JobId="$limited" EndTime=now+1
run() { # run STATUS PATTERN COMMAND...: with a line of that
	local got=0
	timeout -k 5 60 "${@:3}" >"$out/heard" 2>&1 </dev/null || got=$?
	[ $got = "$1" ] && grep -q -e "$2" "$out/heard"
}
for mpi in none pmi2; do
	check "srun --mpi=$mpi" run 2 '2 processes were started without PMIx' \
		srun --mpi=$mpi --nodes=2 "$program" --device cpu
	check 'no page of advice' [ "$(grep -vc '^srun: ' "$out/heard")" = 2 ]
done
check 'a job of another number of ranks' \
	run 2 '2 ranks were started.*: the first takes 3$' \
	srun --mpi=pmix --nodes=2 "$program" "${few[@]}" --ranks 3
allocated=(salloc --nodes=2 --ntasks=4)
sums="$ranks_program --device cpu --sweep sums"
check 'a program without ranks in an allocation' run 0 overlapped \
	"${allocated[@]}" "${BUILD:-build}/fsdp_tp_calcs"
check 'ranks are forked in an allocation' run 0 ' 4 .*ring' \
	"${allocated[@]}" $sums
check 'mpirun starts two ranks in one of four' run 0 ' 2 .*mpi' \
	"${allocated[@]}" mpirun -n 2 --bind-to none $sums
check 'one task of an allocation' run 0 ' 4 .*ring' \
	"${allocated[@]}" srun --mpi=none --nodes=1 --ntasks=1 $sums
check 'a shell with a terminal' run 0 'forked 4' script -qec "srun --pty \
	--mpi=none --nodes=1 --ntasks=2 bash -c '$sums | grep -q \" 4 .*ring\" &&
	echo forked 4'" /dev/null
job=$limited
check 'ends by its limit' ends TIMEOUT
check 'and says so' grep -q 'DUE TO TIME LIMIT' "$out/said"
exit $failed
