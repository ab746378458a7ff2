/* layernorm.cu: layer normalisation, forward and backward */
#include "ops/cuda/elementary.cuh"

template <class F> __device__ float row_sum(size_t C, F f)
{
	float sum = 0;
	for (size_t j = threadIdx.x; j < C; j += blockDim.x)
		sum += f(j);
	return block_sum(sum);
}

__device__ inline float element(const Array &a, size_t i)
{
	float x[1];
	load(x, a, i);
	return x[0];
}

__device__ inline void set(const Array &a, size_t i, float value)
{
	float x[1] = { value };
	store(a, i, x);
}

/* y = g (x - mean) rstd + b; b.at NULL: no shift
 * y, x: (rows, C); mean, rstd: (rows), g, b: (C) fp32
 * bytes a row: C (sizeof x + sizeof y); 8 C FLOPs
 * grid: rows, block: C, up to 512 */
__global__ __launch_bounds__(512) void layernorm(Array y, float *mean,
	float *rstd, Array x, Array g, Array b, size_t C, float eps)
{
	const size_t row = blockIdx.x * C;
	const float mu = row_sum(C, [&](size_t j) {
		return element(x, row + j);
	}) / C;
	const float variance = row_sum(C, [&](size_t j) {
		const float d = element(x, row + j) - mu;
		return d * d;
	}) / C;
	const float factor = rsqrtf(variance + eps);
	if (threadIdx.x == 0) {
		mean[blockIdx.x] = mu;
		rstd[blockIdx.x] = factor;
	}
	for (size_t j = threadIdx.x; j < C; j += blockDim.x)
		set(y, row + j, element(g, j) * (element(x, row + j) - mu) * factor
			+ (b.at ? element(b, j) : 0));
}
struct LayerNorm {
	Array dx, dy, x, g;
	const float *mean, *rstd;
	float *dgain, *dshift;              /* (grid, C) shares */
};

/* dx += rstd (v - mean(v) - xhat mean(v xhat)), v = g dy
 * shares of dg: sums of dy xhat over the rows of a block; of db: of dy
 * bytes a row: C (2 sizeof dx + sizeof dy + sizeof x); 16 C FLOPs
 * grid: 4 a multiprocessor, block: C, up to 512 */
__global__ __launch_bounds__(512) void layernorm_gradient(LayerNorm a,
	size_t rows, size_t C)
{
	float *dgain = a.dgain + blockIdx.x * C, *dshift = a.dshift + blockIdx.x * C;
	for (size_t j = threadIdx.x; j < C; j += blockDim.x)
		dgain[j] = dshift[j] = 0;
	for (size_t row = blockIdx.x; row < rows; row += gridDim.x) {
		const float mu = a.mean[row], factor = a.rstd[row];
		const float constant = row_sum(C, [&](size_t j) {
			return element(a.g, j) * element(a.dy, row * C + j);
		}) / C;
		const float along = row_sum(C, [&](size_t j) {
			return element(a.g, j) * element(a.dy, row * C + j)
				* (element(a.x, row * C + j) - mu) * factor;
		}) / C;
		for (size_t j = threadIdx.x; j < C; j += blockDim.x) {
			const size_t at = row * C + j;
			const float dy = element(a.dy, at);
			const float xhat = (element(a.x, at) - mu) * factor;
			dgain[j] += dy * xhat;
			dshift[j] += dy;
			set(a.dx, at, element(a.dx, at)
				+ factor * (element(a.g, j) * dy - constant - xhat * along));
		}
	}
}
extern "C" void cuda_layernorm_forward(Array y, Array mean, Array rstd, Array x,
	Array g, Array b, size_t rows, size_t C, double eps)
{
	layernorm<<<blocks_for(rows, 1), threads_for(C, 512), 0, cuda_stream()>>>(y,
		(float *)mean.at, (float *)rstd.at, x, g, b, C, (float)eps);
	LAUNCHED();
}

extern "C" void cuda_layernorm_backward(Array dx, Array dg, Array db, Array dy,
	Array x, Array g, Array mean, Array rstd, size_t rows, size_t C)
{
	const size_t each = blocks_for(rows, 4 * cuda_multiprocessors());
	const unsigned blocks = blocks_for(rows, each);
	Array gain = scratch(blocks * C, "gain's gradient"),
		shift = scratch(blocks * C, "shift's gradient");
	layernorm_gradient<<<blocks, threads_for(C, 512), 0, cuda_stream()>>>(
		(LayerNorm){ dx, dy, x, g, (const float *)mean.at,
			(const float *)rstd.at, (float *)gain.at, (float *)shift.at }, rows, C);
	LAUNCHED();
	cuda_sum_rows((float *)dg.at, 1, (const float *)gain.at, blocks, C);
	if (db.at)
		cuda_sum_rows((float *)db.at, 1, (const float *)shift.at, blocks, C);
	cuda_release(shift.at);
	cuda_release(gain.at);
}
