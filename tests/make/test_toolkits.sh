#!/usr/bin/env bash
# test_toolkits.sh: host code compiles under the oldest CUDA and NCCL we take
. tests/make/scratch.sh
[ -n "${CI-}${OLDEST_CUDA-}" ] || exit 77
cache=$root/build/oldest-cuda
packages='nvidia-cuda-runtime-cu12==12.4.* nvidia-cuda-nvrtc-cu12==12.4.*
	nvidia-cuda-cupti-cu12==12.4.* nvidia-cublas-cu12==12.4.*
	nvidia-nccl-cu12==2.20.* nvidia-cuda-nvcc-cu12==12.4.*'
fetch() {
	local wheel library folder
	# shellcheck disable=SC2086
	printf '%s\n' $packages | timeout 100 xargs -P 6 -n 1 \
		python3 -m pip download -q --no-deps -d wheels || return 1
	for wheel in wheels/*.whl; do
		python3 -m zipfile -e "$wheel" wheels/all || return 1
	done
	rm -rf "$cache.new"
	mkdir -p "$cache.new"/{bin,include,lib64}
	for folder in wheels/all/nvidia/*/include; do
		cp -r "$folder/." "$cache.new/include"
	done
	for library in wheels/all/nvidia/*/lib/lib*.so.*; do
		nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }'
		case $library in *cublas*) continue ;; esac
		cp "$library" "$cache.new/lib64" || return 1
		folder=${library##*/}
		ln -s "$folder" "$cache.new/lib64/${folder%%.so*}.so"
	done | sort -u >"$cache.new/symbols"
	printf '#!/bin/sh\necho release 12.4, V12.4\n' >"$cache.new/bin/nvcc"
	chmod +x "$cache.new/bin/nvcc"
	rm -r wheels
	mv "$cache.new" "$cache"
}
[ -e "$cache" ] || fetch >said 2>&1 || { cat said; exit 77; }
cp -r "$root"/{Makefile,src,tests} .
echo >writeup.nw
mkdir -p build
NVCC=$cache/bin/nvcc bash src/make/configure.sh >said 2>&1 || exit 1
check 'its runtime is one that the sources take' \
	grep -q '^CUDA .* 12\.4; no GPU\|^CUDA .* 12\.4, sm_' said
check 'its NCCL has no windows' grep -q '^NCCL .*(2\.20\..*no windows' said
sources=$(ls src/*/cuda/*.c; grep -lE 'HAVE_(CUDA|NCCL|NVRTC|CUPTI)' src/*/*.c)
objects=$(printf 'build/cuda/f32/%s.o\n' $(printf '%s\n' ${sources//.c/}))
echo "host:" $objects >>src/make/build.mk
compiles() {
	make NOWEB=/nonexistent CUDA=1 host >said 2>&1 || { cat said; false; }
}
check 'host code compiles under CUDA 12.4 and NCCL 2.20' compiles
nm -u build/cuda/f32/src/*/cuda/*.o | awk '{ print $2 }' |
	grep -E '^(cuda[A-Z]|cublas|nvrtc|nccl|cupti)' | sort -u >asked
check 'it asks the libraries for something' [ "$(wc -l <asked)" -gt 40 ]
missing=$(comm -23 asked "$cache/symbols")
check "and for nothing that they lack: $missing" [ -z "$missing" ]
cat >older.c <<'END'
#include "device/cuda/older.h"
#include <stdlib.h>
#include <string.h>
#define EXPECT(what) do { if (!(what)) exit(__LINE__ % 255 + 1); } while (0)

static char code[] = "code", library[1], kernel[1], stream[1];
static void *arguments[1];

static CUresult load(CUlibrary *l, const void *at, CUjit_option *jit,
	void **values, unsigned njit, CUlibraryOption *options, void **of, unsigned n)
{
	EXPECT(at == code && !jit && !values && !njit && !options && !of && !n);
	*l = (CUlibrary)library;
	return CUDA_SUCCESS;
}
static CUresult get(CUkernel *k, CUlibrary l, const char *name)
{
	EXPECT(l == (CUlibrary)library && strcmp(name, "fused") == 0);
	*k = (CUkernel)kernel;
	return CUDA_SUCCESS;
}
static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
	unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **at,
	void **extra)
{
	EXPECT(f == (CUfunction)kernel && s == (CUstream)stream && shared == 7);
	EXPECT(gx == 1 && gy == 2 && gz == 3 && bx == 4 && by == 5 && bz == 6);
	EXPECT(at == arguments && extra == NULL);
	return CUDA_SUCCESS;
}
static CUresult unload(CUlibrary l)
{
	EXPECT(l == (CUlibrary)library);
	return CUDA_ERROR_INVALID_HANDLE;
}
cudaError_t cudaGetDriverEntryPoint(const char *name, void **function,
	unsigned long long flags, enum cudaDriverEntryPointQueryResult *found)
{
	static int unloads;
	*found = cudaDriverEntryPointSuccess;
	*function = strcmp(name, "cuLibraryLoadData") == 0 ? (void *)load
		: strcmp(name, "cuLibraryGetKernel") == 0 ? (void *)get
		: strcmp(name, "cuLaunchKernel") == 0 ? (void *)launch
		: strcmp(name, "cuLibraryUnload") == 0 && !unloads++ ? (void *)unload
		: NULL;
	return cudaSuccess;
}

int main(void)
{
	cudaLibrary_t l;
	cudaKernel_t k;
	dim3 grid = { 1, 2, 3 }, block = { 4, 5, 6 };
	EXPECT(!cudaLibraryLoadData(&l, code, NULL, NULL, 0, NULL, NULL, 0));
	EXPECT(!cudaLibraryGetKernel(&k, l, "fused"));
	EXPECT(!cudaLaunchKernel((const void *)k, grid, block, arguments, 7,
		(cudaStream_t)stream));
	EXPECT(cudaLibraryUnload(l) == cudaErrorInvalidResourceHandle);
	EXPECT(cudaLibraryUnload(l) == cudaErrorCallRequiresNewerDriver);
	return 0;
}
END
launches() {
	cc -std=c11 -Isrc "-I$cache/include" older.c -o older && ./older
}
check 'a kernel is loaded and launched by the driver' launches
exit $failed
