/* group_loss.cu: cross-entropy where each rank has some columns of the logits */
#include "ops/cuda/common.cuh"

enum { THREADS = 256 };

// find the terms of a row on a GPU
/* terms (3, rows) of z: (rows, V) of E
 * bytes: V sizeof(E) a row, which is read twice; grid: rows, block 256 */
template <class E>
__global__ __launch_bounds__(THREADS) void partial_loss(float *terms,
	const E *logits, const int32_t *targets, size_t V)
{
	const size_t rows = gridDim.x, row = blockIdx.x;
	const E *z = logits + row * V;
	const int32_t target = targets[row];
	float largest = -FLT_MAX, sum = 0;
	for (size_t v = threadIdx.x; v < V; v += THREADS)
		largest = fmaxf(largest, widen(z[v]));
	largest = block_max(largest);
	for (size_t v = threadIdx.x; v < V; v += THREADS)
		sum += exp2f((widen(z[v]) - largest) * LOG2_E);
	sum = block_sum(sum);
	if (threadIdx.x == 0) {
		terms[row] = largest;
		terms[rows + row] = sum;
		terms[2 * rows + row] = target >= 0 ? widen(z[target]) : 0;
	}
}

extern "C" void cuda_partial_cross_entropy(Device *d, Array terms, Array logits,
	const int32_t *targets, size_t N, size_t V)
{
	with_type(logits.type, [&](auto e) {
		using E = decltype(e);
		partial_loss<E><<<blocks_for(N, 1), THREADS, 0, cuda_stream(d)>>>(
			(float *)terms.at, (const E *)logits.at, targets, V);
	});
	LAUNCHED();
}

// join the terms of a row on a GPU
/* losses (rows), dlogits (rows, V) of E unless NULL; may be logits
 * bytes a row: 2 V sizeof(E); grid: rows, block 256 */
template <class E>
__global__ __launch_bounds__(THREADS) void joined_loss(float *losses,
	E *dlogits, const E *logits, const float *terms, int ranks,
	const int32_t *targets, float scale, size_t V)
{
	const size_t rows = gridDim.x, row = blockIdx.x;
	const float *t = terms + row;
	const int32_t target = targets[row];
	float largest = -FLT_MAX, sum = 0, wanted = 0, out[1];
	// join the terms of the row in the order of ranks
	for (int r = 0; r < ranks; r++)
		largest = fmaxf(largest, t[3 * rows * r]);
	for (int r = 0; r < ranks; r++) {
		sum += t[3 * rows * r + rows]
			* exp2f((t[3 * rows * r] - largest) * LOG2_E);
		wanted += t[3 * rows * r + 2 * rows];
	}
	if (threadIdx.x == 0)
		losses[row] = largest + logf(sum) - wanted;
	if (dlogits == NULL)
		return;
	const float factor = scale / sum;
	for (size_t v = threadIdx.x; v < V; v += THREADS) {
		out[0] = exp2f((widen(logits[row * V + v]) - largest) * LOG2_E) * factor
			- ((int64_t)v == target ? scale : 0);
		store(dlogits + row * V + v, out);
	}
}

// join the terms of a row on a GPU
extern "C" void cuda_joined_cross_entropy(Device *d, Array losses,
	Array dlogits, Array logits, Array terms, int ranks, const int32_t *targets,
	double scale, size_t N, size_t V)
{
	assert(dlogits.at == NULL || dlogits.type == logits.type);
	with_type(logits.type, [&](auto e) {
		using E = decltype(e);
		joined_loss<E><<<blocks_for(N, 1), THREADS, 0, cuda_stream(d)>>>(
			(float *)losses.at, (E *)dlogits.at, (const E *)logits.at,
			(const float *)terms.at, ranks, targets, (float)scale, V);
	});
	LAUNCHED();
}
