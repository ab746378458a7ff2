/* loss.cu: cross-entropy and the gradient of the logits in one pass */
#include "ops/cuda/common.cuh"

enum { THREADS = 256, HELD = 40 };      /* elements that a thread holds */

// take the loss and gradient of a row
/* losses (N) = log(sum(exp(z))) - z[target]; dlogits = scale (softmax(z) - 1 at
 * the target) unless NULL; z: (N, V) of E, dlogits too and may be logits
 * bytes a row: 2 V sizeof(E); 6 V FLOPs and V exponentials
 * grid: N, block 256 */
template <class E, int N>
__global__ __launch_bounds__(THREADS, 3) void cross_entropy(float *losses,
	E *dlogits, const E *logits, const int32_t *targets, float scale, size_t V)
{
	const size_t row = blockIdx.x * V, stride = THREADS * N;
	const size_t first = threadIdx.x * N, target = targets[blockIdx.x];
	const float wanted = widen(logits[row + target]);
	float held[HELD / N][N], rest[N], largest = -FLT_MAX, sum;
	// find the largest logit
	#pragma unroll
	for (int k = 0; k < HELD / N; k++) {
		if (first + k * stride < V)
			load(held[k], logits + row + first + k * stride);
		else
			#pragma unroll
			for (int i = 0; i < N; i++)
				held[k][i] = -INFINITY;
	}
	#pragma unroll
	for (int k = 0; k < HELD / N; k++)
		#pragma unroll
		for (int i = 0; i < N; i++)
			largest = fmaxf(largest, held[k][i]);
	for (size_t j = first + HELD / N * stride; j < V; j += stride) {
		load(rest, logits + row + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			largest = fmaxf(largest, rest[i]);
	}
	largest = block_max(largest);
	// sum the exponentials
	sum = exponentiate(held, largest, LOG2_E);
	for (size_t j = first + HELD / N * stride; j < V; j += stride) {
		load(rest, logits + row + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			sum += exp2f((rest[i] - largest) * LOG2_E);
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		losses[blockIdx.x] = largest + logf(sum) - wanted;
	if (dlogits == NULL)
		return;
	// write the gradient
	const float factor = scale / sum;
	#pragma unroll
	for (int k = 0; k < HELD / N; k++) {
		const size_t j = first + k * stride;
		if (j >= V)
			break;
		#pragma unroll
		for (int i = 0; i < N; i++)
			held[k][i] *= factor;
		if (target - j < N)
			#pragma unroll
			for (int i = 0; i < N; i++)
				held[k][i] -= j + i == target ? scale : 0;
		store(dlogits + row + j, held[k]);
	}
	for (size_t j = first + HELD / N * stride; j < V; j += stride) {
		load(rest, logits + row + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			rest[i] = exp2f((rest[i] - largest) * LOG2_E) * factor
				- (j + i == target ? scale : 0);
		store(dlogits + row + j, rest);
	}
}

// launch the cross-entropy
extern "C" void cuda_fused_cross_entropy(Device *d, Array losses, Array dlogits,
	Array logits, const int32_t *targets, double scale, size_t N, size_t V)
{
	assert(dlogits.at == NULL || dlogits.type == logits.type);
	with_type(logits.type, [&](auto e) {
		using E = decltype(e);
		constexpr int W = 16 / sizeof(E);
		const bool wide = V % W == 0 && packs(logits, W)
			&& (dlogits.at == NULL || packs(dlogits, W));
		const auto kernel = wide ? cross_entropy<E, W> : cross_entropy<E, 1>;
		kernel<<<blocks_for(N, 1), THREADS, 0, cuda_stream(d)>>>(
			(float *)losses.at, (E *)dlogits.at, (const E *)logits.at, targets,
			(float)scale, V);
	});
	LAUNCHED();
}
