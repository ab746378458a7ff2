/* softmax.cu: softmax of the scores up to the diagonal, forward and backward */
#include "ops/cuda/common.cuh"

enum { ROWS = 4 };                      /* warps, and rows, of a block */

/* P = softmax(scale S) over the columns up to the diagonal, 0 after it
 * P, S: (matrices, T, T) of E; S after the diagonal may hold anything
 * bytes a matrix: sizeof(E) (T (T + 1) / 2 + T T); about 5 T T FLOPs and T T
 * exponentials; grid: rows / 4, block: a warp for a row */
template <class E, int N>
__global__ __launch_bounds__(32 * ROWS) void softmax(E *P, const E *S,
	float scale, size_t rows, size_t T)
{
	const size_t row = blockIdx.x * (size_t)ROWS + threadIdx.x / 32;
	if (row >= rows)
		return;
	const size_t last = row % T, first = threadIdx.x % 32 * N;
	const E *s = S + row * T;
	E *p = P + row * T;
	const float base = scale * 1.44269504f;             /* log2(e) */
	float largest = -INFINITY, sum = 0, x[N];
	for (size_t j = first; j <= last; j += 32 * N) {
		load(x, s + j);
		float more = largest;
		#pragma unroll
		for (int i = 0; i < N; i++) {
			x[i] = j + i <= last ? x[i] : -INFINITY;
			more = fmaxf(more, x[i]);
		}
		sum = sum == 0 ? 0 : sum * exp2f((largest - more) * base);
		#pragma unroll
		for (int i = 0; i < N; i++)
			sum += j + i <= last ? exp2f((x[i] - more) * base) : 0;
		largest = more;
	}
	const float most = warp_max(largest);
	sum = warp_sum(sum == 0 ? 0 : sum * exp2f((largest - most) * base));
	const float inverse = 1 / sum;
	for (size_t j = first; j < T; j += 32 * N) {
		if (j <= last)
			load(x, s + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			x[i] = j + i <= last ? exp2f((x[i] - most) * base) * inverse : 0;
		store(p + j, x);
	}
}
/* dS = scale P (dP - sum(P dP)) up to the diagonal, 0 after it; dS may be dP
 * dS, dP, P: (matrices, T, T) of E; what is after the diagonal is not read
 * bytes a matrix: sizeof(E) (T (T + 1) + T T); 2.5 T T FLOPs
 * grid: rows / 4, block: a warp for a row */
template <class E, int N>
__global__ __launch_bounds__(32 * ROWS) void softmax_gradient(E *dS,
	const E *dP, const E *P, float scale, size_t rows, size_t T)
{
	const size_t row = blockIdx.x * (size_t)ROWS + threadIdx.x / 32;
	if (row >= rows)
		return;
	const size_t last = row % T, first = threadIdx.x % 32 * N;
	const size_t at = row * T;
	float dot = 0, dp[N], p[N];
	for (size_t j = first; j <= last; j += 32 * N) {
		load(dp, dP + at + j);
		load(p, P + at + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			dot += j + i <= last ? p[i] * dp[i] : 0;
	}
	dot = warp_sum(dot);
	for (size_t j = first; j < T; j += 32 * N) {
		if (j <= last) {
			load(dp, dP + at + j);
			load(p, P + at + j);
		}
		#pragma unroll
		for (int i = 0; i < N; i++)
			dp[i] = j + i <= last ? p[i] * (dp[i] - dot) * scale : 0;
		store(dS + at + j, dp);
	}
}
extern "C" void cuda_fused_softmax_forward(Array P, Array S, double scale,
	size_t matrices, size_t T)
{
	assert(P.type == S.type);
	const size_t rows = matrices * T;
	with_type(P.type, [&](auto e) {
		using E = decltype(e);
		constexpr int N = 16 / sizeof(E);
		const auto kernel = T % N == 0 && packs(P, N) && packs(S, N)
			? softmax<E, N> : softmax<E, 1>;
		kernel<<<blocks_for(rows, ROWS), 32 * ROWS, 0, cuda_stream()>>>(
			(E *)P.at, (const E *)S.at, (float)scale, rows, T);
	});
	LAUNCHED();
}

extern "C" void cuda_fused_softmax_backward(Array dS, Array dP, Array P,
	double scale, size_t matrices, size_t T)
{
	assert(dS.type == P.type && dP.type == P.type);
	const size_t rows = matrices * T;
	with_type(P.type, [&](auto e) {
		using E = decltype(e);
		constexpr int N = 16 / sizeof(E);
		const auto kernel = T % N == 0 && packs(dS, N) && packs(dP, N)
			&& packs(P, N) ? softmax_gradient<E, N> : softmax_gradient<E, 1>;
		kernel<<<blocks_for(rows, ROWS), 32 * ROWS, 0, cuda_stream()>>>(
			(E *)dS.at, (const E *)dP.at, (const E *)P.at, (float)scale, rows,
			T);
	});
	LAUNCHED();
}
