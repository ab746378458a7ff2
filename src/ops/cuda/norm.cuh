/* norm.cuh: what RMSNorm's kernels share: types, arguments, sums of a row */
#ifndef OPS_CUDA_NORM_CUH
#define OPS_CUDA_NORM_CUH

#include "ops/cuda/common.cuh"
#include "ops/norm_plan.h"

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

// sum over the threads of a row
/* returns the sum over all threads of the row, to each of them */
__device__ inline float sum_of_row(float x)
{
	return blockDim.x == 32 ? warp_sum(x) : block_sum(x);
}

#endif
