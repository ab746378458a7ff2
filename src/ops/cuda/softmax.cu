/* softmax.cu: softmax of the scores up to the diagonal, forward and backward */
#include "ops/cuda/common.cuh"

enum { ROWS = 4 };                      /* warps, and rows, of a block */

// compute P of a row
/* P = softmax(scale S) over the columns up to the diagonal, 0 after it
 * P, S: (matrices, T, T) of E; S after the diagonal may hold anything
 * bytes a matrix: sizeof(E) (T (T + 1) / 2 + T T); 2 T T FLOPs and T T / 2
 * exponentials; grid: rows / 4, block: a warp for a row */
template <class E, int N, int HELD>
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
	float held[HELD / N][N], rest[N], largest = -FLT_MAX, sum;
	// find the largest score
	#pragma unroll
	for (int k = 0; k < HELD / N; k++)
		if (first + k * 32 * N <= last)
			load(held[k], s + first + k * 32 * N);
	#pragma unroll
	for (int k = 0; k < HELD / N; k++)
		#pragma unroll
		for (int i = 0; i < N; i++) {
			if (first + k * 32 * N + i > last)
				held[k][i] = -INFINITY;
			largest = fmaxf(largest, held[k][i]);
		}
	for (size_t j = first + HELD * 32; j <= last; j += 32 * N) {
		load(rest, s + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			if (j + i <= last)
				largest = fmaxf(largest, rest[i]);
	}
	largest = warp_max(largest);
	// sum the exponentials of the scores
	sum = exponentiate(held, largest, base);
	for (size_t j = first + HELD * 32; j <= last; j += 32 * N) {
		load(rest, s + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			sum += j + i <= last ? exp2f((rest[i] - largest) * base) : 0;
	}
	const float inverse = inverse_sum(warp_sum(sum));
	// write P
	#pragma unroll
	for (int k = 0; k < HELD / N; k++) {
		#pragma unroll
		for (int i = 0; i < N; i++)
			held[k][i] *= inverse;
		if (first + k * 32 * N < T)
			store(p + first + k * 32 * N, held[k]);
	}
	for (size_t j = first + HELD * 32; j < T; j += 32 * N) {
		if (j <= last)
			load(rest, s + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			rest[i] = j + i <= last ? exp2f((rest[i] - largest) * base) * inverse : 0;
		store(p + j, rest);
	}
}

// propagate gradients through a row of P
/* dS = scale P (dP - sum(P dP)) up to the diagonal, 0 after it; dS may be dP
 * dS, dP, P: (matrices, T, T) of E; dP, P after the diagonal may hold anything
 * bytes a matrix: sizeof(E) (T (T + 1) + T T); 2.5 T T FLOPs
 * grid: rows / 4, block: a warp for a row */
template <class E, int N, int HELD>
__global__ __launch_bounds__(32 * ROWS) void softmax_gradient(E *dS,
	const E *dP, const E *P, float scale, size_t rows, size_t T)
{
	const size_t row = blockIdx.x * (size_t)ROWS + threadIdx.x / 32;
	if (row >= rows)
		return;
	const size_t last = row % T, first = threadIdx.x % 32 * N, at = row * T;
	float dp[HELD / N][N], p[HELD / N][N], dot = 0, other[N], more[N];
	// sum the products of P and dP
	#pragma unroll
	for (int k = 0; k < HELD / N; k++)
		if (first + k * 32 * N <= last) {
			load(dp[k], dP + at + first + k * 32 * N);
			load(p[k], P + at + first + k * 32 * N);
		}
	#pragma unroll
	for (int k = 0; k < HELD / N; k++)
		#pragma unroll
		for (int i = 0; i < N; i++) {
			if (first + k * 32 * N + i > last)
				dp[k][i] = p[k][i] = 0;
			dot += p[k][i] * dp[k][i];
		}
	for (size_t j = first + HELD * 32; j <= last; j += 32 * N) {
		load(more, dP + at + j);
		load(other, P + at + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			dot += j + i <= last ? other[i] * more[i] : 0;
	}
	dot = warp_sum(dot);
	// write the gradients of the scores
	#pragma unroll
	for (int k = 0; k < HELD / N; k++) {
		#pragma unroll
		for (int i = 0; i < N; i++)
			dp[k][i] = p[k][i] * (dp[k][i] - dot) * scale;
		if (first + k * 32 * N < T)
			store(dS + at + first + k * 32 * N, dp[k]);
	}
	for (size_t j = first + HELD * 32; j < T; j += 32 * N) {
		if (j <= last) {
			load(more, dP + at + j);
			load(other, P + at + j);
		}
		#pragma unroll
		for (int i = 0; i < N; i++)
			more[i] = j + i <= last ? other[i] * (more[i] - dot) * scale : 0;
		store(dS + at + j, more);
	}
}

// launch the fused softmax
extern "C" void cuda_fused_softmax_forward(Device *d, Array P, Array S,
	double scale, size_t matrices, size_t T)
{
	assert(P.type == S.type);
	const size_t rows = matrices * T;
	with_type(P.type, [&](auto e) {
		using E = decltype(e);
		constexpr int N = 16 / sizeof(E);
		const bool wide = T % N == 0 && packs(P, N) && packs(S, N);
		const auto kernel = !wide ? softmax<E, 1, 16>
			: T <= 16 * 32 ? softmax<E, N, 16> : softmax<E, N, 32>;
		kernel<<<blocks_for(rows, ROWS), 32 * ROWS, 0, cuda_stream(d)>>>(
			(E *)P.at, (const E *)S.at, (float)scale, rows, T);
	});
	LAUNCHED();
}

extern "C" void cuda_fused_softmax_backward(Device *d, Array dS, Array dP,
	Array P, double scale, size_t matrices, size_t T)
{
	assert(dS.type == P.type && dP.type == P.type);
	const size_t rows = matrices * T;
	with_type(P.type, [&](auto e) {
		using E = decltype(e);
		constexpr int N = 16 / sizeof(E);
		const bool wide = T % N == 0 && packs(dS, N) && packs(dP, N)
			&& packs(P, N);
		const auto kernel = !wide ? softmax_gradient<E, 1, 16>
			: T <= 16 * 32 ? softmax_gradient<E, N, 16>
			: softmax_gradient<E, N, 32>;
		kernel<<<blocks_for(rows, ROWS), 32 * ROWS, 0, cuda_stream(d)>>>(
			(E *)dS.at, (const E *)dP.at, (const E *)P.at, (float)scale, rows,
			T);
	});
	LAUNCHED();
}
