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
exit $failed
