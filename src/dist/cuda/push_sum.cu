/* push_sum.cu: sums of what copy engines have pushed */
#include "dist/cuda/push.h"
#include "ops/cuda/common.cuh"

enum { SUM_THREADS = 512 };

// add packs of elements
/* packs of V elements at i, i + step, ...; COUNT sources, 0: from.count */
template <int COUNT, int PACKS, int V, class T>
__device__ inline void sum_packs(T *to, const Sources &from, size_t i,
	size_t step)
{
	const int count = COUNT ? COUNT : from.count;
	float sum[PACKS][V], x[PACKS][V];
	#pragma unroll
	for (int k = 0; k < PACKS; k++)
		load(sum[k], (const T *)from.at[0] + i + k * step);
	#pragma unroll
	for (int r = 1; r < count; r++) {
		#pragma unroll
		for (int k = 0; k < PACKS; k++)
			load(x[k], (const T *)from.at[r] + i + k * step);
		#pragma unroll
		for (int k = 0; k < PACKS; k++)
			#pragma unroll
			for (int v = 0; v < V; v++)
				sum[k][v] += x[k][v];
	}
	#pragma unroll
	for (int k = 0; k < PACKS; k++)
		store(to + i + k * step, sum[k]);
}

// sum arrays in a kernel
/* bytes: (count + 1) n elements; grid: few, block 512 */
template <int COUNT, int V, class T>
__global__ __launch_bounds__(SUM_THREADS) void sum_kernel(T *to, Sources from,
	size_t n)
{
	const size_t step = (size_t)gridDim.x * SUM_THREADS * V;
	size_t i = (blockIdx.x * (size_t)SUM_THREADS + threadIdx.x) * V;
	for (; i + 3 * step + V <= n; i += 4 * step)
		sum_packs<COUNT, 4, V>(to, from, i, step);
	for (; i + V <= n; i += step)
		sum_packs<COUNT, 1, V>(to, from, i, step);
	for (; i < n; i++)                  /* a pack that n ends in */
		sum_packs<COUNT, 1, 1>(to, from, i, step);
}

// launch the sum
template <int COUNT, class T>
static void launch_sum(T *to, const Sources *from, size_t n, int blocks,
	cudaStream_t stream)
{
	constexpr int V = 16 / sizeof(T);
	bool wide = aligned(to, 16);
	for (int r = 0; r < from->count; r++)
		wide = wide && aligned(from->at[r], 16);
	const unsigned most = blocks_for(n, SUM_THREADS * (wide ? V : 1));
	const unsigned grid = most < (unsigned)blocks ? most : (unsigned)blocks;
	if (wide)
		sum_kernel<COUNT, V><<<grid, SUM_THREADS, 0, stream>>>(to, *from, n);
	else
		sum_kernel<COUNT, 1><<<grid, SUM_THREADS, 0, stream>>>(to, *from, n);
	LAUNCHED();
}

// choose the kernel for the number of sources
void push_sum(Array to, const Sources *from, size_t n, int blocks,
	cudaStream_t stream)
{
	assert(n > 0 && blocks > 0 && from->count > 0);
	with_type(to.type, [&](auto type) {
		auto *at = (decltype(type) *)to.at;
		if (from->count == 1)
			launch_sum<1>(at, from, n, blocks, stream);
		else if (from->count == 2)
			launch_sum<2>(at, from, n, blocks, stream);
		else
			launch_sum<0>(at, from, n, blocks, stream);
	});
}
