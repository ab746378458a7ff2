#!/usr/bin/env bash
# test_configure.sh: which releases of NVIDIA's tools are taken, and what is said
. tests/make/scratch.sh
home=$(mktemp -d)
trap 'rm -rf "$work" "$home"' EXIT
library() { # library NAME TEXT
	echo "$2" | cc -shared -fPIC -x c - -o "$home/lib64/lib$1.so"
}
toolkit() { # toolkit NVCC HEADERS LIBRARY NCCL-HEADERS NCCL [split [CUPTI]]
	mkdir -p "$home"/{bin,include,lib64}
	write_headers "$@"
	library cudart "int cudaRuntimeGetVersion(int *v) { *v = $3; return 0; }"
	library nccl "int ncclGetVersion(int *v) { *v = $5; return 0; }"
	library cupti "int cuptiGetVersion(unsigned *v)
		{ *v = 130000; return ${7:-0} == 0; }"
	write_nvcc "$@"
	NVCC=$home/bin/nvcc bash "$root/src/make/configure.sh" >said 2>&1
}
write_headers() { # as toolkit
	cat >"$home/include/cuda_runtime_api.h" <<END
#define CUDART_VERSION $2
int cudaRuntimeGetVersion(int *version);
END
	cat >"$home/include/nccl.h" <<END
enum { ncclSuccess };
#define NCCL_VERSION(a, b, c) ((a) * 10000 + (b) * 100 + (c))
#define NCCL_VERSION_CODE $4
enum { NCCL_MAJOR = $4 / 10000, NCCL_MINOR = $4 / 100 % 100,
	NCCL_PATCH = $4 % 100 };
int ncclGetVersion(int *version);
END
	cat >"$home/include/cupti.h" <<END
#include <stdint.h>
enum { CUPTI_SUCCESS, CUPTI_API_VERSION = ${7:-22} };
int cuptiGetVersion(uint32_t *version);
END
}
write_nvcc() { # as toolkit
	cat >"$home/bin/nvcc" <<END
#!/usr/bin/env bash
case \$* in
*--version*) echo 'release $(($1 / 1000)).$(($1 % 1000 / 10)), V1' ;;
*--list-gpu-arch*) echo compute_90 ;;
*-split-compile*) [ -n '${6-}' ] || echo 'llc: unknown -split-compile=0' ;;
esac
while [ \$# -gt 1 ]; do
	[ "\$1" != -o ] || install -m 755 /bin/false "\$2"
	shift
done
END
	chmod +x "$home/bin/nvcc"
}
refuses() { not grep -q 'HAVE_CUDA :' build/config.mk && grep -qF "$1" said; }
takes() { grep -qx "$1 := $2" build/config.mk; }

toolkit 12040 12040 12040 22005 22005
check 'CUDA 12.4 is taken' takes HAVE_CUDA 1
check 'its release is known' takes NVCC_RELEASE 12.4
check 'an option that its tools refuse is left out' takes NVCC_SPLIT ''
check 'NCCL 2.20 is taken' takes HAVE_NCCL 1
check 'without windows' grep -q '^NCCL .*2\.20\.5; no windows' said
check 'CUPTI that does not answer is taken' takes HAVE_CUPTI 1

toolkit 13000 13000 13010 22809 22707 split 130001
check 'a newer library is taken' takes HAVE_CUDA 1
check 'and is named' grep -q '^CUDA .*, 13\.0.* libcudart is of 13\.1$' said
check 'an option that nvcc knows is used' takes NVCC_SPLIT -split-compile=0
check 'an older NCCL is not' not takes HAVE_NCCL 1
check 'which is named' grep -q '^NCCL .*2\.27\.7, headers of 2\.28\.9; not' said
check 'CUPTI of another release is not' not takes HAVE_CUPTI 1
check 'which is named, too' \
	grep -q '^CUPTI .*version 130000, headers of 130001; not' said

toolkit 12040 13000 13000 22005 22005
check 'nvcc and headers must be of one release' refuses \
	'nvcc is of CUDA 12.4, headers are of 13.0, libcudart is of 13.0'
check 'and nothing beside them is used' not takes HAVE_NCCL 1
toolkit 12090 12090 12040 22005 22005
check 'a library must not be older' refuses 'libcudart is of 12.4'
toolkit 12030 12030 12030 22005 22005
check 'CUDA before 12.4 is refused' refuses '12.4 is the oldest'
cat >"$home/include/mpi.h" <<'END'
enum { MPI_SUCCESS, MPI_MAX_LIBRARY_VERSION_STRING = 99 };
int MPI_Init(int *, char ***), MPI_Get_library_version(char *, int *);
int MPI_Finalize(void);
END
library mpi '#include <stdio.h>
	int MPI_Init(int *n, char ***v) { return puts("UCX ERROR no net") < 0; }
	int MPI_Get_library_version(char *s, int *n)
		{ return *n = sprintf(s, "Some  MPI 1.2, of today"); }
	int MPI_Finalize(void) { return puts("UCX WARN of nothing") < 0; }'
cat >"$home/bin/mpicc" <<END
#!/bin/sh
echo "cc -I$home/include -L$home/lib64 -Wl,-rpath,$home/lib64 -lmpi"
END
chmod +x "$home/bin/mpicc"
NVCC=$home/bin MPICC=$home/bin/mpicc bash "$root/src/make/configure.sh" \
	>said 2>&1
check 'an MPI that talks is named' \
	grep -q '^MPI .* (Some MPI 1.2, .*mpirun)$' said
check 'and nothing that it says' not grep -q UCX said
check 'a folder is no nvcc' grep -qx 'CUDA  *nvcc not found; no code .*' said
exit $failed
