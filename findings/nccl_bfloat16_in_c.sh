#!/usr/bin/env bash
# nccl_bfloat16_in_c.sh: NCCL 2.23.4 has no ncclBfloat16 for a program in C
#
# nccl.h is a header of C, and includes cuda_bf16.h without a condition.  But
# NCCL up to 2.23.4 declares ncclBfloat16 only where that header has defined
# __CUDA_BF16_TYPES_EXIST__, which it does for C++ alone.  So one program is
# accepted as C++ and refused as C, by the same compiler; and in C ncclNumTypes,
# the number of types, is less than the library's.  The number 9 works in both.
# NCCL 2.24.3 declares the name for both languages.
#
# Seen, with nvidia-nccl-cu12 and nvidia-cuda-runtime-cu12 12.4.127:
#     2.23.4 c: no ncclBfloat16, ncclNumTypes is 9
#     2.23.4 c++: ncclBfloat16 is 9, ncclNumTypes is 10
#     2.24.3 c: ncclBfloat16 is 9, ncclNumTypes is 12
#     2.24.3 c++: ncclBfloat16 is 9, ncclNumTypes is 12
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unpack() { # unpack FOLDER PACKAGE: a wheel
	python3 -m pip download -q --no-deps -d "$1" "$2"
	python3 -m zipfile -e "$1"/*.whl "$1"
}
unpack cudart nvidia-cuda-runtime-cu12==12.4.127
unpack nvcc nvidia-cuda-nvcc-cu12==12.4.131
cat >types.c <<'END'
#include <nccl.h>
#include <stdio.h>
int main(void)
{
#ifdef NAMED
	printf("ncclBfloat16 is %d", ncclBfloat16);
#else
	printf("no ncclBfloat16");
#endif
	printf(", ncclNumTypes is %d\n", ncclNumTypes);
	return 0;
}
END
build() { # build FLAGS...: types.c in this language, with this NCCL's header
	gcc "-I$version/nvidia/nccl/include" -Icudart/nvidia/cuda_runtime/include \
		-Invcc/nvidia/cuda_nvcc/include -x "$language" types.c -o types "$@"
}
for version in 2.23.4 2.24.3; do
	unpack "$version" "nvidia-nccl-cu12==$version"
	for language in c c++; do
		build -DNAMED 2>log || {
			grep -q 'ncclBfloat16.* undeclared' log
			build
		}
		echo "$version $language: $(./types)"
	done
done | tee said
diff said - <<'END'
2.23.4 c: no ncclBfloat16, ncclNumTypes is 9
2.23.4 c++: ncclBfloat16 is 9, ncclNumTypes is 10
2.24.3 c: ncclBfloat16 is 9, ncclNumTypes is 12
2.24.3 c++: ncclBfloat16 is 9, ncclNumTypes is 12
END
echo 'NCCL behaves as described'
