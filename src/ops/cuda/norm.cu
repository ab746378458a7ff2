/* norm.cu: RMSNorm of a sum, forward and backward */
#include "ops/cuda/common.cuh"

/* sum = x + branch, y = g sum rho, rho = 1/sqrt(mean(sum^2) + eps)
 * x, sum: (rows, C) fp32; branch, y: (rows, C) T; g: (C), rho: (rows) fp32;
 * branch NULL: sum is x
 * bytes a row: C (8 + 2 sizeof(T)), without branch C (4 + sizeof(T));
 * 5 C FLOPs; grid: rows, block: C / N threads, at most 1024, 512 if PER > 1 */
template <class T, int N, int PER>
__global__ __launch_bounds__(most_threads(PER)) void norm_forward(T *y,
	float *rho, float *sum, const float *x, const T *branch, const float *g,
	size_t C, float eps)
{
	const size_t row = blockIdx.x * C;
	float held[PER][N], squares = 0;
	#pragma unroll
	for (int k = 0; k < PER; k++) {
		const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
		if (j >= C)
			break;
		load(held[k], x + row + j);
		if (branch) {
			float more[N];
			load(more, branch + row + j);
			#pragma unroll
			for (int i = 0; i < N; i++)
				held[k][i] += more[i];
			store(sum + row + j, held[k]);
		}
		#pragma unroll
		for (int i = 0; i < N; i++)
			squares += held[k][i] * held[k][i];
	}
	const float factor = rsqrtf(block_sum(squares) / C + eps);
	if (threadIdx.x == 0)
		rho[blockIdx.x] = factor;
	#pragma unroll
	for (int k = 0; k < PER; k++) {
		const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
		if (j >= C)
			break;
		float gain[N], out[N];
		load(gain, g + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			out[i] = held[k][i] * factor * gain[i];
		store(y + row + j, out);
	}
}
template <int N, int PER> struct NormRow {
	float x[PER][N], dy[PER][N], before[PER][N];
};

struct NormArrays {
	float *dsum;
	bool fresh;
	void *copy, *y;
	float *partial;
	const void *dy;
	const float *sum, *g, *rho;
};

template <class T, int N, int PER>
__device__ void load_row(NormRow<N, PER> &r, const NormArrays &a, size_t row,
	size_t C)
{
	#pragma unroll
	for (int k = 0; k < PER; k++) {
		const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
		#pragma unroll
		for (int i = 0; i < N; i++)
			r.x[k][i] = r.dy[k][i] = r.before[k][i] = 0;
		if (j < C) {
			load(r.x[k], a.sum + row * C + j);
			load(r.dy[k], (const T *)a.dy + row * C + j);
			if (!a.fresh)
				load(r.before[k], a.dsum + row * C + j);
		}
	}
}

/* dsum += rho (v - xhat mean(v xhat)), v = g dy, xhat = rho sum; fresh: = ;
 * copy = dsum and y = g xhat in T; partial (grid, C) = sums of dy xhat
 * dsum, sum, copy, y, dy: (rows, C); g: (C); rho: (rows)
 * bytes a row: C (12 + 3 sizeof(T)), 4 C less if fresh, C sizeof(T) less for
 * each of copy and y that is NULL; about 14 C FLOPs
 * grid: what the chip holds; block: C / N threads, at most 1024 or, if PER > 1,
 * 512 */
template <class T, int N, int PER>
__global__ __launch_bounds__(most_threads(PER)) void norm_backward(NormArrays a,
	size_t rows, size_t C)
{
	float dg[PER][N] = {}, g[PER][N] = {};
	NormRow<N, PER> now, next;
	#pragma unroll
	for (int k = 0; k < PER; k++) {
		const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
		if (j < C)
			load(g[k], a.g + j);
	}
	load_row<T>(now, a, blockIdx.x, C);
	for (size_t row = blockIdx.x; row < rows; row += gridDim.x) {
		const float rho = a.rho[row];
		if (row + gridDim.x < rows)
			load_row<T>(next, a, row + gridDim.x, C);
		float dot = 0;
		#pragma unroll
		for (int k = 0; k < PER; k++)
			#pragma unroll
			for (int i = 0; i < N; i++)
				dot += g[k][i] * now.dy[k][i] * (now.x[k][i] * rho);
		const float along = block_sum(dot) / C;
		#pragma unroll
		for (int k = 0; k < PER; k++) {
			const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
			if (j >= C)
				break;
			float y[N];
			#pragma unroll
			for (int i = 0; i < N; i++) {
				const float xhat = now.x[k][i] * rho, dy = now.dy[k][i];
				now.before[k][i] += rho * (g[k][i] * dy - xhat * along);
				dg[k][i] += dy * xhat;
				y[i] = xhat * g[k][i];
			}
			store(a.dsum + row * C + j, now.before[k]);
			if (a.copy)
				store((T *)a.copy + row * C + j, now.before[k]);
			if (a.y)
				store((T *)a.y + row * C + j, y);
		}
		now = next;
	}
	#pragma unroll
	for (int k = 0; k < PER; k++) {
		const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
		if (j < C)
			store(a.partial + blockIdx.x * C + j, dg[k]);
	}
}
enum { SLAB = 512 };                    /* rows that a block sums */

/* sum (slabs, C) = beta sum + sums of slabs of the rows of partial (rows, C),
 * summed in fp32, rounded to T
 * bytes: C (4 rows + sizeof(T) slabs), sizeof(T) C more with beta
 * grid: C / 32 x slabs, block 32 x 32 */
template <class T>
__global__ __launch_bounds__(1024) void sum_rows(T *sum, float beta,
	const float *partial, size_t rows, size_t C)
{
	__shared__ float share[32][32];
	const size_t column = blockIdx.x * (size_t)32 + threadIdx.x;
	const size_t first = blockIdx.y * (size_t)SLAB;
	const size_t end = first + SLAB < rows ? first + SLAB : rows;
	float x = 0;
	if (column < C)
		#pragma unroll 8
		for (size_t row = first + threadIdx.y; row < end; row += 32)
			x += partial[row * C + column];
	share[threadIdx.y][threadIdx.x] = x;
	__syncthreads();
	if (threadIdx.y != 0 || column >= C)
		return;
	for (int i = 1; i < 32; i++)
		x += share[i][threadIdx.x];
	T *to = sum + blockIdx.y * C + column;
	*to = narrow<T>(beta == 0 ? x : beta * widen(*to) + x);
}

extern "C" void cuda_sum_rows(Device *d, Array sum, double beta,
	const float *partial, size_t rows, size_t C)
{
	const dim3 threads(32, 32), grid(blocks_for(C, 32), blocks_for(rows, SLAB));
	const bool whole = grid.y == 1;
	Array to = sum;
	if (!whole)
		to = (Array){ cuda_scratch(d, grid.y * C * sizeof(float), "slabs"),
			FP32 };
	with_type(to.type, [&](auto t) {
		sum_rows<<<grid, threads, 0, cuda_stream(d)>>>((decltype(t) *)to.at,
			whole ? (float)beta : 0, partial, rows, C);
	});
	LAUNCHED();
	if (whole)
		return;
	cuda_sum_rows(d, sum, beta, (const float *)to.at, grid.y, C);
	device_free(d, to.at);
}
extern "C" void cuda_fused_rmsnorm_forward(Device *d, Array y, Array rho,
	Array sum, Array x, Array branch, Array g, size_t rows, size_t C, double eps)
{
	assert(branch.at == NULL || branch.type == y.type);
	const bool wide = packs(y, 4) && packs(x, 4) && packs(g, 4)
		&& (branch.at == NULL || (packs(branch, 4) && packs(sum, 4)));
	with_row(C, wide, [&](auto pack, auto per) {
		with_type(y.type, [&](auto t) {
			using T = decltype(t);
			const unsigned threads = threads_for(blocks_for(C, pack.value),
				most_threads(per.value));
			norm_forward<T, pack.value, per.value>
				<<<blocks_for(rows, 1), threads, 0, cuda_stream(d)>>>((T *)y.at,
				(float *)rho.at, (float *)sum.at, (const float *)x.at,
				(const T *)branch.at, (const float *)g.at, C, (float)eps);
		});
	});
	LAUNCHED();
}

extern "C" void cuda_fused_rmsnorm_backward(Device *d, NormBackward b,
	size_t rows, size_t C)
{
	assert(b.copy.at == NULL || b.copy.type == b.dy.type);
	assert(b.y.at == NULL || b.y.type == b.dy.type);
	const bool wide = packs(b.dsum, 4) && packs(b.dy, 4) && packs(b.sum, 4)
		&& packs(b.g, 4) && (b.copy.at == NULL || packs(b.copy, 4))
		&& (b.y.at == NULL || packs(b.y, 4));
	NormArrays a = { (float *)b.dsum.at, b.fresh, b.copy.at, b.y.at, NULL,
		b.dy.at, (const float *)b.sum.at, (const float *)b.g.at,
		(const float *)b.rho.at };
	with_row(C, wide, [&](auto pack, auto per) {
		with_type(b.dy.type, [&](auto t) {
			const unsigned threads = threads_for(blocks_for(C, pack.value),
				most_threads(per.value));
			const auto kernel = norm_backward<decltype(t), pack.value, per.value>;
			const unsigned blocks = resident_for(d, rows, kernel, threads);
			a.partial = (float *)cuda_scratch(d, blocks * C * sizeof(float),
				"norm's gain gradient");
			kernel<<<blocks, threads, 0, cuda_stream(d)>>>(a, rows, C);
			LAUNCHED();
			cuda_sum_rows(d, b.dg, b.beta, a.partial, blocks, C);
		});
	});
	device_free(d, a.partial);
}
