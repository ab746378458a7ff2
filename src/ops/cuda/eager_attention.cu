/* eager_attention.cu: RoPE and causal softmax by elementary steps */
#include "ops/cuda/elementary.cuh"

/* element i: the even or odd one of pair i */
struct Half { Array a; int odd; };
/* element i: that of pair i in (B, T, H, half) from a table (T, half) */
struct Angle { const float *at; size_t T, H, half; };
/* element i: even ones from one array, odd ones from another */
struct Pairs { const float *even, *odd; };

template <int N>
__device__ inline void load(float (&x)[N], const Half &from, size_t i)
{
	#pragma unroll
	for (int k = 0; k < N; k++)
		load(*(float (*)[1])(x + k), from.a, 2 * (i + k) + from.odd);
}

template <int N>
__device__ inline void load(float (&x)[N], const Angle &from, size_t i)
{
	const size_t row = i / from.half / from.H % from.T;
	#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = from.at[row * from.half + i % from.half + k];
}

template <int N>
__device__ inline void load(float (&x)[N], const Pairs &from, size_t i)
{
	#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = ((i + k) % 2 ? from.odd : from.even)[(i + k) / 2];
}

static inline bool packs_of(const Half &, size_t) { return true; }
static inline bool packs_of(const Pairs &, size_t) { return true; }
static inline bool packs_of(const Angle &a, size_t N)
{
	return a.half % N == 0;
}

extern "C" void cuda_rope(Array y, Array x, Array cosine, Array sine, size_t B,
	size_t T, size_t H, size_t D, int direction)
{
	const size_t n = B * T * H * (D / 2);
	const float sign = (float)direction;
	const auto times = [] __device__ (float a, float b) { return a * b; };
	const Angle c = { (const float *)cosine.at, T, H, D / 2 };
	const Angle s = { (const float *)sine.at, T, H, D / 2 };
	const Half even = { x, 0 }, odd = { x, 1 };
	Array first = scratch(n, "even elements"),
		second = scratch(n, "odd elements"),
		work = scratch(n, "RoPE's intermediate");
	map(first, n, times, even, c);
	map(work, n, times, odd, s);
	map(first, n, [=] __device__ (float a, float b) { return a - sign * b; },
		first, work);
	map(second, n, times, odd, c);
	map(work, n, times, even, s);
	map(second, n, [=] __device__ (float a, float b) { return a + sign * b; },
		second, work);
	map(y, 2 * n, [] __device__ (float x) { return x; }, (Pairs){
		(const float *)first.at, (const float *)second.at });
	cuda_release(work.at);
	cuda_release(second.at);
	cuda_release(first.at);
}

/* 1 up to the diagonal of (matrices, T, T), 0 after it */
struct Causal { size_t T; };

template <int N>
__device__ inline void load(float (&x)[N], const Causal &from, size_t i)
{
	const size_t column = i % from.T, last = i / from.T % from.T;
	#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = column + k <= last;
}

static inline bool packs_of(const Causal &c, size_t N) { return c.T % N == 0; }

extern "C" void cuda_softmax_forward(Array P, Array S, double scale,
	size_t matrices, size_t T)
{
	const size_t rows = matrices * T, n = rows * T;
	const float factor = (float)scale;
	Array work = scratch(n, "scores"), each = scratch(rows, "maximum, sum");
	const PerRow row = { (const float *)each.at, T };
	const auto same = [] __device__ (float x) { return x; };
	map(work, n, [=] __device__ (float s) { return s * factor; }, S);
	map(work, n, [] __device__ (float s, float counts) {
		return counts ? s : -INFINITY;
	}, work, (Causal){ T });
	reduce_rows<MAXIMUM>((float *)each.at, rows, T, same, work);
	map(work, n, [] __device__ (float s, float most) { return s - most; }, work,
		row);
	map(work, n, [] __device__ (float s) { return expf(s); }, work);
	reduce_rows<SUM>((float *)each.at, rows, T, same, work);
	map(P, n, [] __device__ (float e, float sum) { return e / sum; }, work, row);
	cuda_release(each.at);
	cuda_release(work.at);
}

extern "C" void cuda_softmax_backward(Array dS, Array dP, Array P, double scale,
	size_t matrices, size_t T)
{
	const size_t rows = matrices * T, n = rows * T;
	const float factor = (float)scale;
	const auto times = [] __device__ (float a, float b) { return a * b; };
	const auto masked = [] __device__ (float x, float counts) {
		return counts ? x : 0;
	};
	Array work = scratch(n, "gradient of scores"), dot = scratch(rows, "dot");
	map(work, n, times, P, dP);
	map(work, n, masked, work, (Causal){ T });
	reduce_rows<SUM>((float *)dot.at, rows, T, [] __device__ (float x) {
		return x;
	}, work);
	map(work, n, [] __device__ (float d, float dot) { return d - dot; }, dP,
		(PerRow){ (const float *)dot.at, T });
	map(work, n, times, P, work);
	map(work, n, masked, work, (Causal){ T });
	map(dS, n, [=] __device__ (float x) { return x * factor; }, work);
	cuda_release(dot.at);
	cuda_release(work.at);
}
