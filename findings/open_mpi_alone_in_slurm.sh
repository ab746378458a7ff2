#!/usr/bin/env bash
# open_mpi_alone_in_slurm.sh: Open MPI 4.1.4 (Debian 12, 4.1.4-3+b1)
#
# A program of MPI that is started without a launcher is a job of one process.
# In the environment of a task of Slurm it is none, even if the task is the only
# one of its step: MPI_Init takes the list of nodes and the number of a step for
# a sign that srun has started the process directly, looks for PMIx, and where
# that is missing ends the process with a page of advice on how to compile Open
# MPI. No Slurm is needed to see it, only its variables, which every program
# inherits that is typed in a shell of srun --pty. The variables of an allocation
# without a step do no harm.
#
# Output seen:
#   alone: 1 process, status 0
#   in an allocation: 1 process, status 0
#   in a step of one task: The application appears to have been direct launched
#     using "srun", status 1
#
# Needs apt-get of Debian 12, and gcc. Exits with 1 when the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
version=4.1.4-3+b1
packages=$(apt-cache depends --recurse --no-recommends --no-suggests \
	--no-conflicts --no-breaks --no-replaces --no-enhances libopenmpi3 |
	sed -n 's/^\([a-z]\)/\1/p' | grep -vE '^(libc6|libc-bin|debconf|dpkg|.*:)' |
	sort -u)
# shellcheck disable=SC2086
apt-get download -q libopenmpi-dev=$version libopenmpi3=$version \
	openmpi-common=4.1.4-3 openmpi-bin=$version ${packages//libopenmpi3/} >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" root; done
libraries=$work/root/usr/lib/x86_64-linux-gnu
cat >alone.c <<'END'
#include <mpi.h>
#include <stdio.h>
int main(void)
{
	int n;
	MPI_Init(NULL, NULL);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	printf("%d process\n", n);
	return MPI_Finalize();
}
END
gcc -o alone alone.c -I"$libraries/openmpi/include" \
	-L"$libraries/openmpi/lib" -lmpi -Wl,-rpath-link,"$libraries"
export LD_LIBRARY_PATH=$libraries:$libraries/openmpi/lib
export PATH=$work/root/usr/bin:$PATH OPAL_PREFIX=$work/root/usr PMIX_INSTALL_PREFIX=$libraries/pmix2
said() { # said NAME VARIABLE...: the process's words and its status
	local status=0 words
	words=$(env "${@:2}" ./alone 2>&1) || status=$?
	echo "$1: $(grep -oE '^1 process|application .* direct launched.*' \
		<<<"$words" | head -n 1), status $status"
}
{
	said 'alone' -u NOTHING
	said 'in an allocation' SLURM_JOB_ID=7 SLURM_JOBID=7 SLURM_NTASKS=4 \
		SLURM_NODELIST=a
	said 'in a step of one task' SLURM_JOB_ID=7 SLURM_JOBID=7 SLURM_NTASKS=1 \
		SLURM_NODELIST=a SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_PROCID=0 \
		SLURM_STEP_NUM_TASKS=1
} | tee said
diff said - <<'END'
alone: 1 process, status 0
in an allocation: 1 process, status 0
in a step of one task: application appears to have been direct launched using "srun",, status 1
END
