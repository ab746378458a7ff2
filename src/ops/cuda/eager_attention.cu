/* eager_attention.cu: RoPE and causal softmax by elementary steps */
#include "ops/cuda/elementary.cuh"

// take pairs apart, and find their angles
/* element i: the even or the odd element of pair i of an array */
struct PairHalf { Array a; int odd; };
/* element i: the entry of a table (T, half) for pair i of (B, T, H, half) */
struct Angle { const float *at; size_t T, H, half; };
/* element i: from `even` for even i, from `odd` for odd i */
struct JoinedPairs { const float *even, *odd; };

template <int N>
__device__ inline void load(float (&x)[N], const PairHalf &from, size_t i)
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
__device__ inline void load(float (&x)[N], const JoinedPairs &from, size_t i)
{
	#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = ((i + k) % 2 ? from.odd : from.even)[(i + k) / 2];
}

static inline bool packs_of(const PairHalf &, size_t) { return true; }
static inline bool packs_of(const JoinedPairs &, size_t) { return true; }
static inline bool packs_of(const Angle &a, size_t N)
{
	return a.half % N == 0;
}

// rotate pairs, step by step
extern "C" void cuda_rope(Device *d, Array y, Array x, Array cosine, Array sine,
	size_t B, size_t T, size_t H, size_t D, int direction)
{
	const size_t n = B * T * H * (D / 2);
	const float sign = (float)direction;
	const auto times = [] __device__ (float a, float b) { return a * b; };
	const Angle c = { (const float *)cosine.at, T, H, D / 2 };
	const Angle s = { (const float *)sine.at, T, H, D / 2 };
	const PairHalf even = { x, 0 }, odd = { x, 1 };
	Array first = scratch(d, n, "even elements"),
		second = scratch(d, n, "odd elements"),
		work = scratch(d, n, "RoPE's intermediate");
	map(d, first, n, times, even, c);
	map(d, work, n, times, odd, s);
	map(d, first, n, [=] __device__ (float a, float b) { return a - sign * b; },
		first, work);
	map(d, second, n, times, odd, c);
	map(d, work, n, times, even, s);
	map(d, second, n, [=] __device__ (float a, float b) { return a + sign * b; },
		second, work);
	map(d, y, 2 * n, [] __device__ (float x) { return x; }, (JoinedPairs){
		(const float *)first.at, (const float *)second.at });
	device_free(d, work.at);
	device_free(d, second.at);
	device_free(d, first.at);
}

// softmax, step by step
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

extern "C" void cuda_softmax_forward(Device *d, Array P, Array S, double scale,
	size_t matrices, size_t T)
{
	const size_t rows = matrices * T, n = rows * T;
	const float factor = (float)scale;
	Array work = scratch(d, n, "scores"), each = scratch(d, rows, "maximum, sum");
	const PerRow row = { (const float *)each.at, T };
	const auto same = [] __device__ (float x) { return x; };
	map(d, work, n, [=] __device__ (float s) { return s * factor; }, S);
	map(d, work, n, [] __device__ (float s, float counts) {
		return counts ? s : -INFINITY;
	}, work, (Causal){ T });
	reduce_rows<MAXIMUM>(d, (float *)each.at, rows, T, same, work);
	map(d, work, n, [] __device__ (float s, float most) { return s - most; },
		work, row);
	map(d, work, n, [] __device__ (float s) { return expf(s); }, work);
	reduce_rows<SUM>(d, (float *)each.at, rows, T, same, work);
	map(d, P, n, [] __device__ (float e, float sum) { return e / sum; }, work,
		row);
	device_free(d, each.at);
	device_free(d, work.at);
}

// propagate gradients through softmax, step by step
extern "C" void cuda_softmax_backward(Device *d, Array dS, Array dP, Array P,
	double scale, size_t matrices, size_t T)
{
	const size_t rows = matrices * T, n = rows * T;
	const float factor = (float)scale;
	const auto times = [] __device__ (float a, float b) { return a * b; };
	const auto masked = [] __device__ (float x, float counts) {
		return counts ? x : 0;
	};
	Array work = scratch(d, n, "gradient of scores"), dot = scratch(d, rows,
		"dot");
	map(d, work, n, times, P, dP);
	map(d, work, n, masked, work, (Causal){ T });
	reduce_rows<SUM>(d, (float *)dot.at, rows, T, [] __device__ (float x) {
		return x;
	}, work);
	map(d, work, n, [] __device__ (float d, float dot) { return d - dot; }, dP,
		(PerRow){ (const float *)dot.at, T });
	map(d, work, n, times, P, work);
	map(d, work, n, masked, work, (Causal){ T });
	map(d, dS, n, [=] __device__ (float x) { return x * factor; }, work);
	device_free(d, dot.at);
	device_free(d, work.at);
}
