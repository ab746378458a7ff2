/* layernorm.cu: layer normalisation, forward and backward */
#include "ops/cuda/elementary.cuh"

// sum what a thread holds of a row
/* the sum of f(k, i) over a row; (k, i): element i of a thread's pack k */
template <int N, int PER, class F>
__device__ float row_sum(size_t C, F f)
{
	float sum = 0;
	#pragma unroll
	for (int k = 0; k < PER; k++)
		#pragma unroll
		for (int i = 0; i < N; i++)
			if (((size_t)k * blockDim.x + threadIdx.x) * N < C)
				sum += f(k, i);
	return block_sum(sum);
}

/* calls f(k, j) for each of a thread's packs k; j: column at which it begins */
template <int N, int PER, class F>
__device__ void each_pack(size_t C, F f)
{
	#pragma unroll
	for (int k = 0; k < PER; k++) {
		const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
		if (j < C)
			f(k, j);
	}
}

// normalise rows about their mean
/* y = g (x - mean) rstd + b; b.at NULL: no shift
 * y, x: (rows, C); mean, rstd: (rows), g, b: (C) fp32
 * bytes a row: C (sizeof x + sizeof y); 8 C FLOPs
 * grid: rows, block: C / N threads, at most 1024, 512 if PER > 1 */
template <int N, int PER>
__global__ __launch_bounds__(most_threads(PER)) void layernorm(Array y,
	float *mean, float *rstd, Array x, Array g, Array b, size_t C, float eps)
{
	const size_t row = blockIdx.x * C;
	float held[PER][N];
	each_pack<N, PER>(C, [&](int k, size_t j) { load(held[k], x, row + j); });
	const float mu = row_sum<N, PER>(C, [&](int k, int i) {
		return held[k][i];
	}) / C;
	const float factor = rsqrtf(row_sum<N, PER>(C, [&](int k, int i) {
		return (held[k][i] - mu) * (held[k][i] - mu);
	}) / C + eps);
	if (threadIdx.x == 0) {
		mean[blockIdx.x] = mu;
		rstd[blockIdx.x] = factor;
	}
	each_pack<N, PER>(C, [&](int k, size_t j) {
		float gain[N], shift[N] = {};
		load(gain, g, j);
		if (b.at)
			load(shift, b, j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			held[k][i] = gain[i] * (held[k][i] - mu) * factor + shift[i];
		store(y, row + j, held[k]);
	});
}

// propagate gradients to rows about their mean
/* arrays of layer normalisation's backward pass */
struct LayerNorm {
	Array dx, dy, x, g;
	const float *mean, *rstd;
	float *dgain, *dshift;              /* (grid, C): sums of each block */
};

/* dx += rstd (v - mean(v) - xhat mean(v xhat)), v = g dy
 * dgain: sums of dy xhat over the rows of a block; dshift: of dy
 * bytes a row: C (2 sizeof dx + sizeof dy + sizeof x); 16 C FLOPs
 * grid: what the chip holds; block: C / N threads, at most 1024 or, if PER > 1,
 * 512 */
template <int N, int PER>
__global__ __launch_bounds__(most_threads(PER)) void layernorm_gradient(
	LayerNorm a, size_t rows, size_t C)
{
	float dgain[PER][N] = {}, dshift[PER][N] = {}, g[PER][N];
	float xhat[PER][N], dy[PER][N], dx[PER][N];
	each_pack<N, PER>(C, [&](int k, size_t j) { load(g[k], a.g, j); });
	for (size_t row = blockIdx.x; row < rows; row += gridDim.x) {
		const float mu = a.mean[row], factor = a.rstd[row];
		each_pack<N, PER>(C, [&](int k, size_t j) {
			load(xhat[k], a.x, row * C + j);
			load(dy[k], a.dy, row * C + j);
			load(dx[k], a.dx, row * C + j);
			#pragma unroll
			for (int i = 0; i < N; i++)
				xhat[k][i] = (xhat[k][i] - mu) * factor;
		});
		const float constant = row_sum<N, PER>(C, [&](int k, int i) {
			return g[k][i] * dy[k][i];
		}) / C;
		const float along = row_sum<N, PER>(C, [&](int k, int i) {
			return g[k][i] * dy[k][i] * xhat[k][i];
		}) / C;
		// write the row's gradient, and add to gain's and shift's
		each_pack<N, PER>(C, [&](int k, size_t j) {
			#pragma unroll
			for (int i = 0; i < N; i++) {
				dgain[k][i] += dy[k][i] * xhat[k][i];
				dshift[k][i] += dy[k][i];
				dx[k][i] += factor * (g[k][i] * dy[k][i] - constant
					- xhat[k][i] * along);
			}
			store(a.dx, row * C + j, dx[k]);
		});
	}
	each_pack<N, PER>(C, [&](int k, size_t j) {
		store(a.dgain + blockIdx.x * C + j, dgain[k]);
		store(a.dshift + blockIdx.x * C + j, dshift[k]);
	});
}

// launch layer normalisation
extern "C" void cuda_layernorm_forward(Device *d, Array y, Array mean, Array rstd,
	Array x, Array g, Array b, size_t rows, size_t C, double eps)
{
	const bool wide = packs(y, 4) && packs(x, 4) && packs(g, 4) && packs(b, 4);
	with_row_layout(C, wide, [&](auto pack, auto per) {
		const unsigned threads = threads_for(blocks_for(C, pack.value),
			most_threads(per.value));
		layernorm<pack.value, per.value><<<blocks_for(rows, 1), threads, 0,
			cuda_stream(d)>>>(y, (float *)mean.at, (float *)rstd.at, x, g, b, C,
			(float)eps);
	});
	LAUNCHED();
}

extern "C" void cuda_layernorm_backward(Device *d, Array dx, Array dg, Array db,
	Array dy, Array x, Array g, Array mean, Array rstd, size_t rows, size_t C)
{
	const bool wide = packs(dx, 4) && packs(dy, 4) && packs(x, 4) && packs(g, 4);
	LayerNorm a = { dx, dy, x, g, (const float *)mean.at,
		(const float *)rstd.at, NULL, NULL };
	with_row_layout(C, wide, [&](auto pack, auto per) {
		const unsigned threads = threads_for(blocks_for(C, pack.value),
			most_threads(per.value));
		const auto kernel = layernorm_gradient<pack.value, per.value>;
		const unsigned blocks = resident_for(d, rows, kernel, threads);
		a.dgain = (float *)scratch(d, blocks * C, "gain's gradient").at;
		a.dshift = (float *)scratch(d, blocks * C, "shift's gradient").at;
		kernel<<<blocks, threads, 0, cuda_stream(d)>>>(a, rows, C);
		LAUNCHED();
		cuda_sum_rows(d, dg, 1, a.dgain, blocks, C);
		if (db.at)
			cuda_sum_rows(d, db, 1, a.dshift, blocks, C);
	});
	device_free(d, a.dshift);
	device_free(d, a.dgain);
}
