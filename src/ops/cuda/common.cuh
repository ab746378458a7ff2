/* common.cuh: what the kernels share: number formats, packs, reductions,
 * launches */
#ifndef OPS_CUDA_COMMON_CUH
#define OPS_CUDA_COMMON_CUH

#include <assert.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <float.h>

#include "ops/cuda/cuda.h"
#include "ops/cuda/launch_context.h"

using bf16 = __nv_bfloat16;
using fp16 = __half;

// widen on load, narrow on store
__device__ inline float widen(float x) { return x; }
__device__ inline float widen(bf16 x) { return __bfloat162float(x); }
__device__ inline float widen(fp16 x) { return __half2float(x); }

template <class T> __device__ inline T narrow(float x);
template <> __device__ inline float narrow<float>(float x) { return x; }
template <> __device__ inline bf16 narrow<bf16>(float x)
{
	return __float2bfloat16_rn(x);
}

template <> __device__ inline fp16 narrow<fp16>(float x)
{
	return __float2half_rn(x);
}

// move N elements at once
template <class T, int N> struct alignas(N * sizeof(T)) Pack {
	T at[N];
};

template <class T, int N>
__device__ inline void load(float (&x)[N], const T *from)
{
	const auto pack = *(const Pack<T, N> *)from;
	#pragma unroll
	for (int i = 0; i < N; i++)
		x[i] = widen(pack.at[i]);
}

template <class T, int N>
__device__ inline void store(T *to, const float (&x)[N])
{
	Pack<T, N> pack;
	#pragma unroll
	for (int i = 0; i < N; i++)
		pack.at[i] = narrow<T>(x[i]);
	*(Pack<T, N> *)to = pack;
}

static inline bool aligned(const void *p, size_t nbytes)
{
	return (uintptr_t)p % nbytes == 0;
}

/* is a aligned for packs of N elements? A NULL array is */
static inline bool packs(Array a, size_t N)
{
	return aligned(a.at, N * type_size(a.type));
}

// move N elements, W at once
template <int W, class T, int N>
__device__ inline void load_by(float (&x)[N], const T *from)
{
	#pragma unroll
	for (int i = 0; i < N; i += W)
		load(*(float (*)[W])(x + i), from + i);
}

template <int W, class T, int N>
__device__ inline void store_by(T *to, const float (&x)[N])
{
	#pragma unroll
	for (int i = 0; i < N; i += W)
		store(to + i, *(const float (*)[W])(x + i));
}

// call a template for a type
/* calls f with a value of the C++ type that stores `type` */
template <class F> void with_type(Type type, F f)
{
	switch (type) {
	case TF32:
	case FP32: f(float()); break;
	case BF16: f(bf16()); break;
	case FP16: f(fp16()); break;
	default: assert(!"a type that kernels know");
	}
}

/* an integer as a type, which a generic lambda takes and a template can use */
template <int I> struct Constant {
	static constexpr int value = I;
};

/* calls f with D as a Constant, if attention has kernels for heads of D elements;
 * returns whether it has */
template <class F> bool with_width(size_t D, F f)
{
	switch (D) {
	case 16:  f(Constant<16>()); return true;
	case 32:  f(Constant<32>()); return true;
	case 64:  f(Constant<64>()); return true;
	case 80:  f(Constant<80>()); return true;
	case 128: f(Constant<128>()); return true;
	}
	return false;
}

// reduce over a warp and over a block
__device__ inline float warp_sum(float x)
{
	#pragma unroll
	for (int lane = 16; lane > 0; lane /= 2)
		x += __shfl_xor_sync(0xffffffff, x, lane);
	return x;
}

__device__ inline float warp_max(float x)
{
	#pragma unroll
	for (int lane = 16; lane > 0; lane /= 2)
		x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, lane));
	return x;
}

/* reduces x over all threads of a block of whole warps; none: neutral element.
 * Every thread calls it and gets the result */
template <class Reduce>
__device__ inline float block_reduce(float x, float none, Reduce reduce)
{
	__shared__ float partial[32];
	const int warps = blockDim.x / 32, lane = threadIdx.x % 32;
	x = reduce(x);
	__syncthreads();                    /* an earlier call has been read */
	if (lane == 0)
		partial[threadIdx.x / 32] = x;
	__syncthreads();
	return reduce(lane < warps ? partial[lane] : none);
}

__device__ inline float block_sum(float x)
{
	return block_reduce(x, 0, warp_sum);
}

__device__ inline float block_max(float x)
{
	return block_reduce(x, -INFINITY, warp_max);
}

/* (x - largest) base becomes its power of two; returns their sum */
template <int K, int N>
__device__ __forceinline__ float exponentiate(float (&x)[K][N], float largest,
	float base)
{
	float sum = 0;
	#pragma unroll
	for (int k = 0; k < K; k++)
		#pragma unroll
		for (int i = 0; i < N; i++)
			sum += x[k][i] = exp2f((x[k][i] - largest) * base);
	return sum;
}

// reduce over the lanes of a row
constexpr float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

/* over the quad: the four lanes that share a row of an accumulator */
__device__ inline float quad_sum(float x)
{
	x += __shfl_xor_sync(0xffffffff, x, 1);
	return x + __shfl_xor_sync(0xffffffff, x, 2);
}

__device__ inline float quad_max(float x)
{
	x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
	return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

/* one over the sum of a row's exponentials; 1: it has none */
__device__ __forceinline__ float inverse_sum(float sum)
{
	return sum == 0 ? 1 : 1 / sum;
}

/* L as it is subtracted from scores: that of a row without scores is finite. A
 * huge one is raised by more than it was rounded, or P could be infinite */
__device__ __forceinline__ float finite_L(float L)
{
	const float x = L < -FLT_MAX ? -FLT_MAX : L;
	return fabsf(x) < 0x1p24f ? x : fmaf(fabsf(x), 0x1p-21f, x);
}

__device__ inline float exp2_approx(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* 2^x, where only rounding can have left x above 0, and then far above it if it
 * is the difference of huge numbers: at most 1. NaN stays NaN */
__device__ __forceinline__ float exp2_capped(float x)
{
	float y;
	asm("min.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
	return exp2_approx(y);
}

/* is a maximum so large that scores must be rounded as it was? */
__device__ __forceinline__ bool huge(float row_max)
{
	return fabsf(row_max) >= 0x1p20f;
}

/* sets offset, which is subtracted from scale s in the exponent, to the maxima of
 * a thread's two rows. Where one is huge the scores become what is left of them,
 * each product rounded as the maximum was, and offset 0 */
template <int R>
__device__ __forceinline__ void settle_huge_scores(float (&s)[R],
	float (&offset)[2], const float (&row_max)[2], float scale)
{
	const bool settle = huge(row_max[0]) || huge(row_max[1]);
	const float inverse = settle ? 1 / scale : 0;
	#pragma unroll
	for (int low = 0; low < 2; low++)
		offset[low] = settle ? 0 : row_max[low];
	if (settle)
		#pragma unroll
		for (int i = 0; i < R; i++)
			s[i] = __fadd_rn(__fmul_rn(s[i], scale), -row_max[i / 2 % 2])
				* inverse;
}

// count blocks, check a launch
/* blocks for n pieces of work, `each` of them in a block */
static inline unsigned blocks_for(size_t n, size_t each)
{
	const size_t blocks = (n + each - 1) / each;
	assert(0 < blocks && blocks <= INT32_MAX);
	return (unsigned)blocks;
}

/* threads for n pieces of work: whole warps, at most `most` */
static inline unsigned threads_for(size_t n, unsigned most)
{
	return n >= most ? most : (unsigned)(n + 31) / 32 * 32;
}

/* blocks that all run at once and share n pieces of work equally; shared: bytes
 * of dynamic shared memory of one; most: limit of them on a multiprocessor */
template <class Kernel>
unsigned resident_for(Device *d, size_t n, Kernel kernel, unsigned threads,
	size_t shared = 0, size_t most = SIZE_MAX)
{
	int each = 0;
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel,
		(int)threads, shared));
	if (most < (size_t)each)
		each = (int)most;
	return blocks_for(n, blocks_for(n, (size_t)each * cuda_multiprocessors(d)));
}

/* after every launch */
#define LAUNCHED() CUDA(cudaGetLastError())

// choose how a row is held
constexpr int most_threads(int per)
{
	return per == 1 ? 1024 : 512;
}

/* calls f with the number of packs of a thread and the elements of a pack, for
 * rows of C elements; wide: packs of four may be moved */
template <class F> void with_row_layout(size_t C, bool wide, F f)
{
	assert(C <= 8192 && "kernels hold rows of up to 8192 elements");
	if (!wide || C % 4)
		f(Constant<1>(), Constant<16>());
	else if (C > 4096)
		f(Constant<4>(), Constant<4>());
	else
		f(Constant<4>(), Constant<1>());
}

#endif
