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
offers() { # offers NAME HEADERS CALL FLAGS...: is there this library?
	local headers=$2
	{
		# shellcheck disable=SC2086
		printf '#include <%s>\n' $headers
		echo "int main(void) { int version, minor; return $3; }"
	} | try "${@:4}" || return 1
	report "$1" "$(library "lib${1,,}")"
	echo "HAVE_${1^^} := 1" >>"$config"
}
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
headers='setjmp.h stdarg.h stddef.h stdint.h cmocka.h'
# shellcheck disable=SC2086
if offers cmocka "$headers" '(assert_true(1), 0)' $cflags $libs; then
	printf '%s\n' "CMOCKA_CFLAGS := $cflags" "CMOCKA_LIBS := $libs" >>"$config"
else
	report cmocka 'not found (libcmocka-dev); the tests are not built'
fi
if mpi=$(command -v mpicc); then
	cflags=$(mpicc --showme:compile 2>/dev/null || true)
	libs=$(mpicc --showme:link 2>/dev/null || true)
	# shellcheck disable=SC2086
	if offers MPI mpi.h 'MPI_Init(NULL, NULL) || MPI_Finalize()' $cflags $libs
	then
		printf 'MPI_CFLAGS := %s\nMPI_LIBS := %s\n' "$cflags" "$libs" >>"$config"
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
with=("-I$cuda/include" "-L$cuda/lib64" "-Wl,-rpath,$cuda/lib64")
[ -n "$cuda" ] && offers NCCL nccl.h 'ncclGetVersion(&version)' "${with[@]}" \
	-lnccl -lcudart || report NCCL 'not found; not used'
[ -n "$cuda" ] && offers NVRTC nvrtc.h 'nvrtcVersion(&version, &minor)' \
	"${with[@]}" -lnvrtc ||
	report NVRTC 'not found; nothing is compiled for GPUs at run time'
for folder in ${cuda:+"$cuda" "$cuda/extras/CUPTI"}; do
	flags=-I$folder/include
	libs="-L$folder/lib64 -Wl,-rpath,$folder/lib64 -lcupti"
	# shellcheck disable=SC2086
	offers CUPTI cupti.h 'cuptiGetVersion(&version)' "-I$cuda/include" \
		"$flags" $libs || continue
	printf 'CUPTI_FLAGS := %s\nCUPTI_LIBS := %s\n' "$flags" "$libs" >>"$config"
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
