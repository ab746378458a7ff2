/* embedding.cu: rows of a table, and the sum of their gradients */
#include "ops/cuda/elementary.cuh"

// look rows up
/* the row of the table for token i / C */
struct Lookup { Array table; const int32_t *tokens; size_t C; };

template <int N>
__device__ inline void load(float (&x)[N], const Lookup &from, size_t i)
{
	const int32_t token = from.tokens[i / from.C];
	if (token >= 0)
		load(x, from.table, token * from.C + i % from.C);
	else
		#pragma unroll
		for (int k = 0; k < N; k++)
			x[k] = 0;
}

static inline bool packs_of(const Lookup &l, size_t N)
{
	return l.C % N == 0 && packs(l.table, N);
}

extern "C" void cuda_embedding_forward(Device *d, Array x, Array table,
	const int32_t *tokens, size_t N, size_t C)
{
	map(d, x, N * C, [] __device__ (float x) { return x; },
		(Lookup){ table, tokens, C });
}

// add the rows of equal tokens in order
/* dtable[token] += the sum of the rows of dx of this token, in the block that has
 * the token's first occurrence
 * dtable: (V, C) of T, dx: (N, C); summed in fp32
 * grid: N x C / (256 W), block 256 */
template <int W, class T>
__global__ __launch_bounds__(MAP_THREADS) void embedding_gradient(T *dtable,
	Array dx, const int32_t *tokens, size_t N, size_t C)
{
	__shared__ unsigned found[MAP_THREADS / 32];
	const size_t own = blockIdx.x;
	const size_t column = (blockIdx.y * (size_t)MAP_THREADS + threadIdx.x) * W;
	const int32_t token = tokens[own];
	bool before = false;
	for (size_t i = threadIdx.x; i < own; i += MAP_THREADS)
		before |= tokens[i] == token;
	if (__syncthreads_or(before || token < 0))
		return;
	T *row = dtable + token * C + column;
	float sum[W], more[W];
	if (column < C)
		load(sum, row);
	for (size_t start = own; start < N; start += MAP_THREADS) {
		// mark in found which of the next tokens are equal
		const size_t i = start + threadIdx.x;
		const unsigned equal = __ballot_sync(0xffffffff, i < N && tokens[i] == token);
		if (threadIdx.x % 32 == 0)
			found[threadIdx.x / 32] = equal;
		__syncthreads();
		// add the marked rows in order
		for (int w = 0; w < MAP_THREADS / 32; w++)
			for (unsigned left = found[w]; left; left &= left - 1) {
				const size_t i = start + 32 * w + __ffs(left) - 1;
				if (column >= C)
					continue;
				load(more, dx, i * C + column);
				#pragma unroll
				for (int k = 0; k < W; k++)
					sum[k] += more[k];
			}
		__syncthreads();                /* before found is written again */
	}
	if (column < C)
		store(row, sum);
}

// launch the embedding's gradient
extern "C" void cuda_embedding_backward(Device *d, Array dtable, double beta,
	Array dx, const int32_t *tokens, size_t N, size_t C, size_t V)
{
	if (beta == 0)
		CUDA(cudaMemsetAsync(dtable.at, 0, V * C * type_size(dtable.type),
			cuda_stream(d)));
	const bool wide = C % 4 == 0 && packs(dtable, 4) && packs(dx, 4);
	const dim3 grid(blocks_for(N, 1),
		blocks_for(C, (wide ? 4 : 1) * MAP_THREADS));
	with_type(dtable.type, [&](auto t) {
		using T = decltype(t);
		const auto kernel = wide ? embedding_gradient<4, T>
			: embedding_gradient<1, T>;
		kernel<<<grid, MAP_THREADS, 0, cuda_stream(d)>>>((T *)dtable.at, dx,
			tokens, N, C);
	});
	LAUNCHED();
}
