/* elementary.cuh: arrays of any type in a kernel, and maps with any formula */
#ifndef OPS_CUDA_ELEMENTARY_CUH
#define OPS_CUDA_ELEMENTARY_CUH

#include <utility>

#include "ops/cuda/common.cuh"

enum { MAP_THREADS = 256 };

// load and store elements of any type
/* x rounded to the bits of TF32; NaN and infinities stay */
__device__ inline float round_tf32(float x)
{
	uint32_t bits = __float_as_uint(x);
	if ((bits & 0x7f800000) != 0x7f800000)          /* finite: ties to even */
		bits += 0xfff + (bits >> 13 & 1);
	return isnan(x) ? x : __uint_as_float(bits & ~0x1fffu);
}

template <int N>
__device__ inline void load(float (&x)[N], const Array &from, size_t i)
{
	switch (from.type) {
	case BF16: load(x, (const bf16 *)from.at + i); break;
	case FP16: load(x, (const fp16 *)from.at + i); break;
	default:   load(x, (const float *)from.at + i); break;
	}
}

template <int N>
__device__ inline void store(const Array &to, size_t i, float (&x)[N])
{
	switch (to.type) {
	case BF16: store((bf16 *)to.at + i, x); break;
	case FP16: store((fp16 *)to.at + i, x); break;
	case TF32:
		#pragma unroll
		for (int k = 0; k < N; k++)
			x[k] = round_tf32(x[k]);
		/* fallthrough */
	default:   store((float *)to.at + i, x); break;
	}
}

/* may the pack of N elements at every multiple of N be moved? */
static inline bool packs_of(const Array &a, size_t N)
{
	return packs(a, N);
}

// describe a scalar of the device
/* one number for all elements, in the device's memory */
struct DeviceScalar { const float *at; };

template <int N>
__device__ inline void load(float (&x)[N], const DeviceScalar &from, size_t)
{
	#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = *from.at;
}

static inline bool packs_of(const DeviceScalar &, size_t) { return true; }

// map operands to a result
template <class F, int M, int N, size_t... I>
__device__ inline float formula(F f, const float (&x)[M][N], int k,
	std::index_sequence<I...>)
{
	return f(x[I][k]...);
}

template <int N, class F, class... X>
__device__ inline void map_pack(const Array &y, size_t i, F f, const X &...x)
{
	float in[sizeof...(X) + 1][N], out[N];
	int operand = 0;
	(load(in[operand++], x, i), ...);
	#pragma unroll
	for (int k = 0; k < N; k++)
		out[k] = formula(f, in, k, std::index_sequence_for<X...>());
	store(y, i, out);
}

/* y[i] = f(x[i] ...) for i < n; nothing if *skip is not 0
 * bytes: of y and of the operands that are not broadcast
 * grid: n / (256 N), block 256 */
template <int N, class F, class... X>
__global__ __launch_bounds__(MAP_THREADS) void map_any(Array y, size_t n,
	const int32_t *skip, F f, X... x)
{
	size_t i = (blockIdx.x * (size_t)MAP_THREADS + threadIdx.x) * N;
	if (skip && *skip)
		return;
	if (i + N <= n)
		map_pack<N>(y, i, f, x...);
	else
		for (; i < n; i++)
			map_pack<1>(y, i, f, x...);
}

template <class F, class... X>
void map_unless(Device *d, const int32_t *skip, Array y, size_t n, F f, X... x)
{
	const bool wide = packs(y, 4) && (packs_of(x, 4) && ... && true);
	if (wide)
		map_any<4><<<blocks_for(n, 4 * MAP_THREADS), MAP_THREADS, 0,
			cuda_stream(d)>>>(y, n, skip, f, x...);
	else
		map_any<1><<<blocks_for(n, MAP_THREADS), MAP_THREADS, 0,
			cuda_stream(d)>>>(y, n, skip, f, x...);
	LAUNCHED();
}

/* y[i] = f(x[i] ...) for i < n; y may be an operand */
template <class F, class... X>
void map(Device *d, Array y, size_t n, F f, X... x)
{
	map_unless(d, NULL, y, n, f, x...);
}

/* scratch memory for one operation */
static inline Array scratch(Device *d, size_t n, const char *what)
{
	return (Array){ cuda_scratch(d, n * sizeof(float), what), FP32 };
}

#endif
