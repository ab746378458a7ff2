#!/usr/bin/env bash
# configure.sh: finds compiler and libraries by building and running programs;
# prints what it found and writes build/config.mk
set -euo pipefail
export LC_ALL=C
mkdir -p build
work=$(mktemp -d build/configure.XXXXXX)
trap 'rm -rf "$work"' EXIT
config=$work/config.mk
try() { # try FLAGS...: does the program on standard input work?
	cat >"$work/try.c"
	"$CC" -std=c11 -D_GNU_SOURCE "$work/try.c" -o "$work/try" "$@" \
		>"$work/log" 2>&1 && said=$("$work/try" 2>>"$work/log")
}
library() { # library NAME: the path of a library that the last program uses
	ldd "$work/try" | awk -v name="$1" 'index($1, name) { print $3; exit }'
}
report() { printf '%-10s %s\n' "$1" "$2"; }
missing() { # missing WHAT PACKAGE: for what we cannot do without
	echo "configure: no working $1; the Debian package is $2 (make deps)" >&2
	exit 2
}
for compiler in gcc clang cc; do
	[ -n "${CC-}" ] || CC=$(command -v $compiler || true)
done
[ -n "$CC" ] || missing 'C compiler' gcc
CC=$(basename "$CC")
case $CC in clang*) package=libomp-dev ;; *) package=gcc ;; esac
try -fopenmp <<'END' || missing "C compiler with OpenMP ($CC)" $package
#include <omp.h>
#include <stdio.h>
int main(void) { printf("%d", omp_get_max_threads()); return 0; }
END
report compiler "$("$CC" --version | head -n 1)"
report target "$("$CC" -dumpmachine), OpenMP with $said threads"
echo "CC := $CC" >>"$config"
cat >"$work/blas.c" <<'END'
#include <cblas.h>
#include <stdio.h>
char *openblas_get_config(void);
int main(void)
{
	float a[] = {1, 2, 3, 4}, c[4];
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2,
		1, a, 2, a, 2, 0, c, 2);
	printf("%s", openblas_get_config());
	return !(c[0] == 7 && c[3] == 22);
}
END
cflags=${BLAS_CFLAGS-$(pkg-config --cflags openblas 2>/dev/null || true)}
libs=${BLAS_LIBS-$(pkg-config --libs openblas 2>/dev/null || echo -lopenblas)}
# shellcheck disable=SC2086
try $cflags $libs <"$work/blas.c" || missing OpenBLAS libopenblas-openmp-dev
report OpenBLAS "$(library openblas) ($said)"
printf 'BLAS_CFLAGS := %s\nBLAS_LIBS := %s\n' "$cflags" "$libs" >>"$config"
cflags=${CMOCKA_CFLAGS-$(pkg-config --cflags cmocka 2>/dev/null || true)}
libs=${CMOCKA_LIBS-$(pkg-config --libs cmocka 2>/dev/null || echo -lcmocka)}
# shellcheck disable=SC2086
if try $cflags $libs <<'END'
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
int main(void) { assert_true(1); return 0; }
END
then
	report cmocka "$(library cmocka)"
	printf '%s\n' 'HAVE_CMOCKA := 1' "CMOCKA_CFLAGS := $cflags" \
		"CMOCKA_LIBS := $libs" >>"$config"
else
	report cmocka 'not found (libcmocka-dev); the tests are not built'
fi
if mpi=$(command -v mpicc); then
	cflags=$(mpicc --showme:compile 2>/dev/null || true)
	libs=$(mpicc --showme:link 2>/dev/null || true)
	# shellcheck disable=SC2086
	if try $cflags $libs <<'END'
#include <mpi.h>
int main(void) { return MPI_Init(NULL, NULL) || MPI_Finalize(); }
END
	then
		report MPI "$(library libmpi)"
		printf '%s\n' 'HAVE_MPI := 1' "MPI_CFLAGS := $cflags" \
			"MPI_LIBS := $libs" >>"$config"
	else
		report MPI "$mpi builds no working program; not used"
	fi
else
	report MPI 'not found (libopenmpi-dev openmpi-bin); not used'
fi
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
query='--query-gpu=name,compute_cap --format=csv,noheader'
# shellcheck disable=SC2086
gpu=$(nvidia-smi $query 2>/dev/null | grep -m 1 ', [0-9]*\.[0-9]*$' || true)
if [ -z "${ARCH-}" ]; then
	ARCH=sm_$(sed 's/.*, *//; s/\.//' <<<"$gpu")
	case $ARCH in sm_ | sm_90) ARCH=sm_90a ;; esac
fi
cat >"$work/try.cu" <<'END'
#include <cublasLt.h>
__global__ void k(void) { }
int main(void)
{
	k<<<1, 1>>>();
	return cublasLtGetVersion() == 0 || cudaDeviceSynchronize() != cudaSuccess;
}
END
cuda= newest=
echo 'NVCC :=' >>"$config"
if [ ! -x "$nvcc" ]; then
	report CUDA 'nvcc not found; the kernels are not compiled'
elif cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
	! "$nvcc" -gencode "arch=compute_${ARCH#sm_},code=$ARCH" "$work/try.cu" \
	-o "$work/try" -lcublasLt -Xlinker "-rpath,$cuda/lib64" >"$work/log" 2>&1
then
	report CUDA "$nvcc fails for $ARCH, not used: $(head -n 1 "$work/log")"
	cuda=
else
	device=cpu
	newest=$("$nvcc" --list-gpu-arch | sed -n 's/^compute_//p' | sort -n | tail -n 1)
	if [ -z "$gpu" ]; then
		report CUDA "$nvcc, $ARCH; no GPU: kernels are compiled and not run"
	elif "$work/try"; then
		device=cuda
		report CUDA "$nvcc, $ARCH, $gpu"
	else
		report CUDA "$nvcc, $ARCH; kernels fail on $gpu: is its driver too old?"
	fi
	printf '%s\n' "NVCC := $nvcc" "CUDA_HOME := $cuda" "ARCH ?= $ARCH" \
		"ARCH_NEWEST := sm_$newest" "DEVICE := $device" >>"$config"
fi
shopt -s nullglob
printf '%s\n' "GPUS := $(echo /dev/nvidia[0-9]*)" >>"$config"
libs="-L${cuda:-/usr/local/cuda}/lib64 -lnccl -lcudart"
# shellcheck disable=SC2086
if [ -n "$cuda" ] && try "-I$cuda/include" $libs \
	"-Wl,-rpath,$cuda/lib64" <<'END'
#include <nccl.h>
int main(void) { int version; return ncclGetVersion(&version); }
END
then
	report NCCL "$(library libnccl)"
	echo 'HAVE_NCCL := 1' >>"$config"
else
	report NCCL 'not found; not used'
fi
libs="-L${cuda:-/usr/local/cuda}/lib64 -lnvrtc"
# shellcheck disable=SC2086
if [ -n "$cuda" ] && try "-I$cuda/include" $libs \
	"-Wl,-rpath,$cuda/lib64" <<'END'
#include <nvrtc.h>
int main(void) { int major, minor; return nvrtcVersion(&major, &minor); }
END
then
	report NVRTC "$(library libnvrtc)"
	echo 'HAVE_NVRTC := 1' >>"$config"
else
	report NVRTC 'not found; nothing is compiled for GPUs at run time'
fi
for folder in ${cuda:+"$cuda" "$cuda/extras/CUPTI"}; do
	flags="-I$cuda/include -I$folder/include"
	libs="-L$folder/lib64 -Wl,-rpath,$folder/lib64 -lcupti"
	# shellcheck disable=SC2086
	try $flags $libs <<'END' || continue
#include <cupti.h>
int main(void) { uint32_t version; return cuptiGetVersion(&version); }
END
	report CUPTI "$(library libcupti)"
	printf '%s\n' 'HAVE_CUPTI := 1' "CUPTI_FLAGS := -I$folder/include" \
		"CUPTI_LIBS := $libs" >>"$config"
	break
done
ncu=$(PATH=$PATH:${cuda:-/usr/local/cuda}/bin command -v ncu || true)
if [ -z "$ncu" ]; then
	report ncu 'not found (nsight-compute); no counters are read'
elif [ "$(id -u)" != 0 ] &&
	grep -qs 'RmProfilingAdminOnly: 1' /proc/driver/nvidia/params; then
	report ncu "$ncu; the driver lets only root read counters"
else
	report ncu "$ncu"
	echo 'HAVE_COUNTERS := 1' >>"$config"
fi
mv -f "$config" build/config.mk
