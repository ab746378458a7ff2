# mpi.sh: sourced by tests after expect.sh: the build's compiler is the array cc,
# and mpirun the launcher of its MPI, for root and for any number of ranks
recorded() { sed -n "s/^$1 := //p" build/config.mk; }
eval "cc=($(recorded COMPILER))"
eval "mpirun=$(recorded MPIRUN)"
if mpirun=$(command -v "${mpirun:-mpirun}"); then
	mkdir "$out/bin"
	printf '#!/bin/sh\nexec %q "$@"\n' "$mpirun" >"$out/bin/mpirun"
	chmod +x "$out/bin/mpirun"
	PATH=$out/bin:$PATH
fi
has_mpi() { [ -n "$mpirun" ] && ldd "$1" 2>/dev/null | grep -q libmpi; }
is_mpich() { mpirun --version 2>&1 | grep -q HYDRA; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 # Open MPI 4, and 5 by PRRTE
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export ASAN_OPTIONS=detect_leaks=0
