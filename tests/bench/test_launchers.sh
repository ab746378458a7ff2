#!/usr/bin/env bash
# test_launchers.sh: what the README says of hostfiles
. tests/experiments/expect.sh
. tests/bench/mpi.sh
program=${BUILD:-build}/fsdp_accounting
if ! has_mpi "$program"; then
	echo 'ok - launchers # SKIP no MPI'
	exit 0
fi
export OMPI_MCA_mpi_yield_when_idle=1
. tests/bench/readme.sh
from_readme '10.0.0.1' '10.0.0.2' >"$out/hosts"
check 'the README has a hostfile' [ "$(grep -c 'slots=8$' "$out/hosts")" = 2 ]
sed -i 's/^10.0.0.1 slots=8/localhost slots=2/; /^10/d' "$out/hosts"
! is_mpich || sed -i 's/ slots=/:/' "$out/hosts"
line=$(from_readme 'mpirun -n 16 --hostfile' 'mpirun -n 16' | head -n 1)
line=${line/-n 16/-n 2}
line=${line/--ranks 16/--ranks 2}
line=${line/--hostfile hosts/--hostfile $out/hosts}
check 'the README starts a job by it' [ "${line%% *}" = mpirun ]
listed() { timeout -k 5 60 bash -c "$1" >"$out/said" 2>&1; }
check 'a job of a hostfile' listed \
	"${line/--size xl --precision bf16/${few[*]} --out $out/h.tsv}"
check 'has its rows' [ "$(rows "$out/h.tsv")" -ge 1 ]
exit $failed
