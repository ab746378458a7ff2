/* norm_common.cuh: what RMSNorm's kernels share: types, arguments, rows' sums */
#ifndef OPS_CUDA_NORM_COMMON_CUH
#define OPS_CUDA_NORM_COMMON_CUH

#include "ops/cuda/common.cuh"
#include "ops/norm_blocks.h"

// call a template for the types of stream and branch
/* calls f with values of the types of stream and branch */
template <class F> void with_types(Type stream, Type branch, F f)
{
	if (stream == FP32 || stream == TF32) {
		with_type(branch, [&](auto t) { f(float(), t); });
	} else {
		assert(stream == branch);
		if (stream == BF16)
			f(bf16(), bf16());
		else
			f(fp16(), fp16());
	}
}

/* elements of a stream in 16 bytes */
template <class X> constexpr int pack_of() { return 16 / sizeof(X); }

/* a norm's gains: elements of T if `low`, else of fp32 */
template <class T> struct Gains {
	const void *at;
	bool low;

	Gains(Array g, Type output)
	{
		at = g.at;
		low = g.type == BF16 || g.type == FP16;
		assert(!low || g.type == output);
	}

	/* gains j ... j + N - 1 */
	template <int N> __device__ void read(float (&x)[N], size_t j) const
	{
		if (low)
			load(x, (const T *)at + j);
		else
			load(x, (const float *)at + j);
	}
};

// store packs as words
/* the type of a register or several that hold so many bytes */
template <int NBYTES> struct WordOf;
template <> struct WordOf<16> { using type = uint4; };
template <> struct WordOf<8> { using type = uint2; };
template <> struct WordOf<4> { using type = unsigned; };
template <> struct WordOf<2> { using type = unsigned short; };

/* narrows two at once */
__device__ inline __nv_bfloat162 narrow_pair(float x, float y, bf16)
{
	return __floats2bfloat162_rn(x, y);
}

__device__ inline __half2 narrow_pair(float x, float y, fp16)
{
	return __floats2half2_rn(x, y);
}

/* by one instruction for up to 16 bytes */
template <class T, int N>
__device__ inline void store_whole(T *to, const float (&x)[N])
{
	Pack<T, N> pack;
	#pragma unroll
	for (int i = 0; i < N; i++)
		if constexpr (sizeof(T) == 4 || N % 2)
			pack.at[i] = narrow<T>(x[i]);
		else if (i % 2 == 0)
			*(decltype(narrow_pair(0, 0, T())) *)&pack.at[i]
				= narrow_pair(x[i], x[i + 1], T());
	if constexpr (sizeof pack == 16)
		__stwb((uint4 *)to, *(const uint4 *)&pack);
	else if constexpr (sizeof pack == 8)
		__stwb((uint2 *)to, *(const uint2 *)&pack);
	else
		*(Pack<T, N> *)to = pack;
}

// sum over the threads of a row
/* returns the sum over all threads of the row, to each of them */
__device__ inline float sum_of_row(float x)
{
	return blockDim.x == 32 ? warp_sum(x) : block_sum(x);
}

#endif
