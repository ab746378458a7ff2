#!/usr/bin/env bash
# configure.sh: finds compiler and libraries by building and running programs;
# prints what it found and writes build/config.mk
set -euo pipefail
shopt -s nullglob
export LC_ALL=C
mkdir -p build
work=$(mktemp -d build/configure.XXXXXX)
trap 'rm -rf "$work"' EXIT
config=$work/config.mk
links() { # links FLAGS...: can the program on standard input be built?
	said=
	cat >"$work/try.c"
	"${cc[@]}" -std=c11 -D_GNU_SOURCE "$work/try.c" -o "$work/try" "$@" \
		>"$work/log" 2>&1
}
try() { # try FLAGS...: does it work?
	links "$@" && said=$("$work/try" 2>>"$work/log")
}
library() { # library NAME: the path of a library that the last program uses
	ldd "$work/try" | awk -v name="$1" 'index($1, name) { print $3; exit }'
}
report() { printf '%-10s %s\n' "$1" "$2"; } # for the reader
record() { # record NAME VALUE: for make
	local value=${2//\$/\$\$}
	printf '%s := %s\n' "$1" "${value//\#/\\#}" >>"$config"
}
offers() { # offers NAME HEADERS CALL FLAGS...: is there this library?
	local headers=$2
	{
		# shellcheck disable=SC2086
		printf '#include <%s>\n' $headers
		echo "int main(void) { int version, minor; return $3; }"
	} | try "${@:4}" || return 1
	report "$1" "$(library "lib${1,,}")"
	record "HAVE_${1^^}" 1
}
missing() { # missing WHAT PACKAGE: for what we cannot do without
	echo "configure: no working $1; the Debian package is $2 (make deps)" >&2
	exit 2
}
find_gpu() { # prints name and compute capability of the first one
	nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null |
		grep -m 1 ', [0-9]*\.[0-9]*$' || true
}
compile_kernel() {
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
	split=-split-compile=0
	run_nvcc && ! grep -q split-compile "$work/log" || { split= && run_nvcc; }
}
run_nvcc() {
	# shellcheck disable=SC2086
	"$nvcc" $split -gencode "arch=compute_${ARCH#sm_},code=$ARCH" \
		"$work/try.cu" -o "$work/try" -lcublasLt \
		-Xlinker "-rpath,$home/lib64" >"$work/log" 2>&1
}
runtime_fits() { # sets home and release
	home=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
	release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
	try "-DNVCC=${release/./ * 1000 + 10 * }" "-I$home/include" \
		"-L$home/lib64" "-Wl,-rpath,$home/lib64" -lcudart <<'END'
#include <cuda_runtime_api.h>
#include <stdio.h>
int main(void)
{
	int nvcc = NVCC, headers = CUDART_VERSION, library = 0;
	cudaRuntimeGetVersion(&library);
	printf("nvcc is of CUDA %d.%d, headers are of %d.%d, libcudart is of %d.%d",
		nvcc / 1000, nvcc % 1000 / 10, headers / 1000, headers % 1000 / 10,
		library / 1000, library % 1000 / 10);
	if (nvcc < 12040)
		printf("; 12.4 is the oldest that the sources take");
	return nvcc < 12040 || nvcc != headers || library < headers
		|| library / 1000 != headers / 1000;
}
END
}
split_compiler() { # into the words of the array cc
	local compiler
	for compiler in gcc clang cc; do
		[ -n "${CC-}" ] || ! command -v $compiler >/dev/null || CC=$compiler
	done
	if [[ ${CC-} == */* && -f $CC && -x $CC ]]; then
		cc=("$CC")
	else
		eval "cc=(${CC-})"
	fi 2>"$work/log" || missing "C compiler ($CC)" gcc
	[ ${#cc[@]} -gt 0 ] || missing 'C compiler' gcc
	[[ ${cc[0]} != [!/]*/* ]] || cc[0]=$PWD/${cc[0]}
}
find_compiler() {
	local package=gcc clang= cc_words
	split_compiler
	if "${cc[@]}" -dM -E -xc /dev/null 2>/dev/null | grep -q __clang__; then
		clang=1 package=libomp-dev
	fi
	try -fopenmp <<'END' || missing "C compiler with OpenMP ($CC)" $package
#include <omp.h>
#include <stdio.h>
int main(void) { printf("%d", omp_get_max_threads()); return 0; }
END
	report compiler "$("${cc[@]}" --version | head -n 1)"
	report target "$("${cc[@]}" -dumpmachine), OpenMP with $said threads"
	printf -v cc_words '%q ' "${cc[@]}"
	record COMPILER "${cc_words% }"
	record IS_CLANG "$clang"
}
find_openblas() {
	local cflags libs
	cflags=${BLAS_CFLAGS-$(pkg-config --cflags openblas 2>/dev/null || true)}
	libs=${BLAS_LIBS-$(pkg-config --libs openblas 2>/dev/null || echo -lopenblas)}
	# shellcheck disable=SC2086
	try $cflags $libs <<'END' || missing OpenBLAS libopenblas-openmp-dev
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
	report OpenBLAS "$(library openblas) ($said)"
	record BLAS_CFLAGS "$cflags"
	record BLAS_LIBS "$libs"
}
find_cmocka() {
	local cflags libs headers='setjmp.h stdarg.h stddef.h stdint.h cmocka.h'
	cflags=${CMOCKA_CFLAGS-$(pkg-config --cflags cmocka 2>/dev/null || true)}
	libs=${CMOCKA_LIBS-$(pkg-config --libs cmocka 2>/dev/null || echo -lcmocka)}
	# shellcheck disable=SC2086
	if offers cmocka "$headers" '(assert_true(1), 0)' $cflags $libs; then
		record CMOCKA_CFLAGS "$cflags"
		record CMOCKA_LIBS "$libs"
	else
		report cmocka 'not found (libcmocka-dev); the tests are not built'
	fi
}
ask_mpi() { # sets cflags and libs to what $mpi adds to our compiler
	local words word options=
	read -r -a words <<<"$("$mpi" -show 2>/dev/null || true)"
	cflags=() libs=()
	for word in "${words[@]}"; do
		case $word in
		-I* | -D* | -pthread) cflags+=("$word") ;;
		-*) libs+=("$word") options=1 ;;
		*) [ -z "$options" ] || libs+=("$word") ;;
		esac
	done
}
find_mpi() {
	local cflags libs mpi mpirun
	if ! mpi=$(command -v "${MPICC:-mpicc}"); then
		report MPI "no ${MPICC:-mpicc} (libopenmpi-dev openmpi-bin); not used"
		return
	fi
	ask_mpi
	if ! try "${cflags[@]}" "${libs[@]}" <<'END'; then
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	char name[MPI_MAX_LIBRARY_VERSION_STRING];
	int n;
	if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
		return 1;
	MPI_Get_library_version(name, &n);
	name[strcspn(name, ",\n")] = '\0';
	printf("name: %s\n", name);
	return MPI_Finalize();
}
END
		report MPI "$mpi: no working program, not used: $(head -n 1 "$work/log")"
		return
	fi
	mpirun=${mpi%/*}/$(sed 's/.*mpicc/mpirun/' <<<"${mpi##*/}")
	[ -x "$mpirun" ] || mpirun=mpirun
	said=$(sed -n 's/^name: //p' <<<"$said" | tr -s ' \t' ' ')
	report MPI "$(library libmpi) ($said, $mpirun)"
	record HAVE_MPI 1
	record MPI_CFLAGS "${cflags[*]}"
	record MPI_LIBS "${libs[*]}"
	record MPIRUN "$(printf %q "$mpirun")"
}
find_cuda() {
	local nvcc gpu home split
	cuda= # the folder of CUDA, if it can be used
	nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
	gpu=$(find_gpu)
	if [ ! -f "$nvcc" ] || [ ! -x "$nvcc" ]; then
		report CUDA 'nvcc not found; no code for GPUs can be compiled'
	elif ! runtime_fits; then
		report CUDA "$nvcc is not used: ${said:-$(head -n 1 "$work/log")}"
	elif compile_kernel; then
		cuda=$home
		record_cuda
	else
		report CUDA "$nvcc fails for $ARCH, not used: $(head -n 1 "$work/log")"
	fi
	[ -n "$cuda" ] && [ -n "$gpu" ] && "$work/try" && record DEVICE cuda ||
		record DEVICE cpu
	record GPUS "$(echo /dev/nvidia[0-9]*)"
}
record_cuda() {
	local newest gpu_says
	newest=$("$nvcc" --list-gpu-arch | sed -n 's/^compute_//p' | sort -n |
		tail -n 1)
	if [ -z "$gpu" ]; then
		gpu_says='; no GPU: only make kernels compiles kernels'
	elif "$work/try"; then
		gpu_says=", $ARCH, $gpu"
	else
		gpu_says=", $ARCH; kernels fail on $gpu: is its driver too old?"
	fi
	[[ $said = *" $release" ]] || gpu_says+="; $said"
	report CUDA "$nvcc, $release$gpu_says"
	record HAVE_CUDA 1
	record NVCC "$nvcc"
	record NVCC_RELEASE "$release"
	record NVCC_SPLIT "$split"
	record CUDA_HOME "$cuda"
	echo "ARCH ?= $ARCH" >>"$config"
	record ARCH_NEWEST "sm_$newest"
}
beside_cuda() { # beside_cuda links|try FLAGS...: with CUDA's headers, libraries
	said=
	[ -n "$cuda" ] && "$1" "-I$cuda/include" "${@:2}" \
		"-L$cuda/lib64" "-Wl,-rpath,$cuda/lib64"
}
found() { # found NAME LIBS [SAYING]
	report "$1" "$(library "lib${1,,}")${3:+ ($3)}"
	record "HAVE_$1" 1
	record "$1_LIBS" "$2"
}
find_nccl() {
	if beside_cuda try -lnccl -lcudart <<'END'; then
#include <nccl.h>
#include <stdio.h>
int main(void)
{
	int v = 0, headers = NCCL_VERSION_CODE;
	if (ncclGetVersion(&v) != ncclSuccess)
		return 1;
	printf("%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
	if (v / 100 != headers / 100)
		printf(", headers of %d.%d.%d", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
	if (headers < NCCL_VERSION(2, 20, 0))
		printf("; 2.20 is the oldest that the sources take");
	else if (headers < NCCL_VERSION(2, 27, 0))
		printf("; no windows, transport 'symmetric' does as 'nccl'");
	return headers < NCCL_VERSION(2, 20, 0) || v / 100 < headers / 100;
}
END
		found NCCL -lnccl "$said"
	else
		report NCCL "${said:-not found}; not used"
	fi
}
find_nvrtc() {
	if beside_cuda try -lnvrtc <<'END'; then
#include <nvrtc.h>
#include <stdio.h>
int main(void)
{
	int major = 0, minor = 0;
	nvrtcResult result = nvrtcVersion(&major, &minor);
	printf("%d.%d", major, minor);
	return result != NVRTC_SUCCESS;
}
END
		[ "$said" = "$release" ] || said+=", nvcc is of $release"
		found NVRTC -lnvrtc "$said"
	else
		report NVRTC 'not found; nothing is compiled for GPUs at run time'
	fi
}
find_cupti() {
	local folder flags libs
	for folder in ${cuda:+"$cuda" "$cuda/extras/CUPTI"}; do
		flags=-I$folder/include
		libs="-L$folder/lib64 -Wl,-rpath,$folder/lib64 -lcupti"
		# shellcheck disable=SC2086
		beside_cuda links "$flags" $libs <<'END' || continue
#include <cupti.h>
#include <stdio.h>
int main(void)
{
	uint32_t version = 0;
	if (cuptiGetVersion(&version) == CUPTI_SUCCESS
		&& version != CUPTI_API_VERSION)
		printf("version %u, headers of %d", version, CUPTI_API_VERSION);
	return 0;
}
END
		said=$({ "$work/try"; } 2>/dev/null) || :
		[ -z "$said" ] || break
		found CUPTI "$libs"
		record CUPTI_FLAGS "$flags"
		return
	done
	report CUPTI "${said:-not found}; not used, nothing is recorded on a GPU"
}
find_ncu() {
	local ncu
	ncu=$(PATH=$PATH:${cuda:-/usr/local/cuda}/bin command -v ncu || true)
	if [ -z "$ncu" ]; then
		report ncu 'not found (nsight-compute); no counters are read'
	elif [ "$(id -u)" != 0 ] &&
		grep -qs 'RmProfilingAdminOnly: 1' /proc/driver/nvidia/params; then
		report ncu "$ncu; the driver lets only root read counters"
	else
		report ncu "$ncu"
		record HAVE_COUNTERS 1
	fi
}
for name in ${SETTINGS-}; do
	before=$(sed -n "/^ASKED_$name := /{s///; s/[$][$]/$/g; s/\\\\#/#/g; p;}" \
		build/config.mk 2>/dev/null || true)
	[ -n "${!name-}" ] || [ -z "$before" ] || declare "$name=$before"
	[ -z "${!name-}" ] || record "ASKED_$name" "${!name}"
done
find_compiler
find_openblas
find_cmocka
find_mpi
find_cuda
find_nccl
find_nvrtc
find_cupti
find_ncu
mv -f "$config" build/config.mk
