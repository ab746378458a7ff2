/* norm_backward.cu: RMSNorm's gradients, and sums over rows */
#include "ops/cuda/norm.cuh"

// list the arrays of a norm's gradient
/* dsum += rho (v - xhat mean(v xhat)), v = g dy, xhat = rho sum; fresh: = ;
 * copy = dsum and y = g xhat in T; partial: sums of dy xhat over rows
 * rows of C elements; sum: x_row from each to the next, dy: dy_row, dsum:
 * dx_row; copy, y dense, may be NULL; y may be dy; g: (C), rho: (rows) fp32;
 * rho NULL: it is found again, with eps */
template <class X, class T> struct NormGradient {
	X *dsum;
	T *copy, *y;
	float *partial;
	const T *dy;
	const X *sum;
	Gains<T> g;
	const float *rho;
	size_t rows, C, x_row, dy_row, dx_row;
	float eps;
	int ahead;                          /* rows on their way; 0: none */
	bool fresh;
};

// keep coming rows in shared memory
/* starts to copy N elements to shared memory */
template <int N, class T>
__device__ inline void cp_async(T *to, const T *from)
{
	constexpr int NBYTES = N * sizeof(T);
	const unsigned at = (unsigned)__cvta_generic_to_shared(to);
	if constexpr (NBYTES == 16)
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
			:: "r"(at), "l"(from) : "memory");
	else if constexpr (NBYTES >= 4)
		asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
			:: "r"(at), "l"(from), "n"(NBYTES) : "memory");
	else
		*to = *from;
}

__device__ inline void cp_async_commit()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> __device__ inline void cp_async_wait_group()
{
	asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

/* until this thread's copies are done, but for the latest ahead - 1 rows */
__device__ inline void wait_for_row(int ahead)
{
	switch (ahead) {
	case 4:  cp_async_wait_group<3>(); break;
	case 3:  cp_async_wait_group<2>(); break;
	case 2:  cp_async_wait_group<1>(); break;
	default: cp_async_wait_group<0>();
	}
}

// start the copy of a row, and read it
/* a slot: x (PER, threads, N), then what dsum holds unless fresh, then dy */
template <class X, class T, int N, int PER> struct RingSlot {
	X *x, *before;
	T *dy;

	__device__ RingSlot(unsigned char *ring, int slot, bool fresh)
	{
		const size_t n = (size_t)PER * N * blockDim.x;
		const size_t nbytes = n * (sizeof(X) * (fresh ? 1 : 2) + sizeof(T));
		x = (X *)(ring + slot * nbytes);
		before = x + n;
		dy = (T *)(fresh ? before : before + n);
	}

	/* unless there is no such row */
	__device__ void fetch(const NormGradient<X, T> &a, size_t row)
	{
		#pragma unroll
		for (int k = 0; k < PER; k++) {
			const size_t p = (size_t)k * blockDim.x + threadIdx.x, j = p * N;
			if (row < a.rows && j < a.C) {
				cp_async<N>(x + p * N, a.sum + row * a.x_row + j);
				cp_async<N>(dy + p * N, a.dy + row * a.dy_row + j);
				if (!a.fresh)
					cp_async<N>(before + p * N, a.dsum + row * a.dx_row + j);
			}
		}
		cp_async_commit();
	}

	template <class F>
	__device__ static void read(float (&to)[PER][N], const F *from, size_t C)
	{
		#pragma unroll
		for (int k = 0; k < PER; k++) {
			const size_t p = (size_t)k * blockDim.x + threadIdx.x;
			#pragma unroll
			for (int i = 0; i < N; i++)
				to[k][i] = 0;
			if (p * N < C)
				load(to[k], from + p * N);
		}
	}

	__device__ static void read_gains(float (&to)[PER][N], const Gains<T> &g,
		size_t C)
	{
		if (g.low)
			read(to, (const T *)g.at, C);
		else
			read(to, (const float *)g.at, C);
	}
};

// propagate gradients through rows that registers hold
/* bytes a row: C (3 sizeof X or, fresh, 2 sizeof X, + sizeof T), C sizeof T more
 * for each of copy and y; about 14 C FLOPs; partial: (grid, C)
 * grid: what the chip holds; block: whole warps, PER N threads >= C; shared
 * memory: a.ahead slots, at least one */
template <class X, class T, int N, int PER>
__global__ __launch_bounds__(1024) void norm_backward(NormGradient<X, T> a)
{
	extern __shared__ __align__(16) unsigned char ring[];
	using RowSlot = RingSlot<X, T, N, PER>;
	const float each = 1.0f / a.C;
	float dg[PER][N] = {}, g[PER][N];
	RowSlot::read_gains(g, a.g, a.C);
	for (int s = 0; s < a.ahead; s++)
		RowSlot(ring, s, a.fresh).fetch(a, blockIdx.x + s * (size_t)gridDim.x);
	int slot = 0, turn = 0;
	for (size_t row = blockIdx.x; row < a.rows; row += gridDim.x, turn ^= 1) {
		float x[PER][N], dy[PER][N], before[PER][N] = {};
		RowSlot now(ring, slot, a.fresh);
		const float saved = a.rho ? a.rho[row] : 0;
		// take the row from its slot, and fill the slot again
		if (a.ahead == 0)
			now.fetch(a, row);
		wait_for_row(a.ahead);
		RowSlot::read(x, now.x, a.C);
		RowSlot::read(dy, now.dy, a.C);
		if (!a.fresh)
			RowSlot::read(before, now.before, a.C);
		float dot = 0, squares = 0;
		#pragma unroll
		for (int k = 0; k < PER; k++)
			#pragma unroll
			for (int i = 0; i < N; i++) {
				dot += g[k][i] * dy[k][i] * x[k][i];
				squares += x[k][i] * x[k][i];
			}
		if (a.ahead)
			now.fetch(a, row + a.ahead * (size_t)gridDim.x);
		// find the row's factor, and the gradient along it
		const bool again = a.rho == NULL;
		const float2 sums = sums_of_row(make_float2(dot, squares), again, turn);
		const float rho = again ? rsqrtf(sums.y * each + a.eps) : saved;
		const float along = sums.x * rho * each;
		// write the row's gradients, and add to the gain's
		#pragma unroll
		for (int k = 0; k < PER; k++) {
			const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
			if (j >= a.C)
				break;
			float y[N];
			#pragma unroll
			for (int i = 0; i < N; i++) {
				const float xhat = x[k][i] * rho;
				before[k][i] += rho * (g[k][i] * dy[k][i] - xhat * along);
				dg[k][i] += dy[k][i] * xhat;
				y[i] = xhat * g[k][i];
			}
			store(a.dsum + row * a.dx_row + j, before[k]);
			if (a.copy)
				store(a.copy + row * a.C + j, before[k]);
			if (a.y)
				store(a.y + row * a.C + j, y);
		}
		slot = slot + 1 < a.ahead ? slot + 1 : 0;
	}
	#pragma unroll
	for (int k = 0; k < PER; k++) {
		const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
		if (j < a.C)
			store(a.partial + blockIdx.x * a.C + j, dg[k]);
	}
}

// sum the rows of partial results
enum { SLAB = 2048 };                   /* rows that a block sums */

/* sum (slabs, C) = beta sum + the sum of each slab of rows of partial (rows, C),
 * summed in fp32, rounded once to T
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

// propagate gradients through rows that are read twice
/* rho of each row; bytes: C sizeof X a row; grid: rows */
template <class X, int N, class T>
__global__ __launch_bounds__(512) void norm_factors(float *rho,
	NormGradient<X, T> a)
{
	float squares = 0, x[N];
	for (size_t j = threadIdx.x * (size_t)N; j < a.C; j += blockDim.x * N) {
		load(x, a.sum + blockIdx.x * a.x_row + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			squares += x[i] * x[i];
	}
	squares = sum_of_row(squares);
	if (threadIdx.x == 0)
		rho[blockIdx.x] = rsqrtf(squares / a.C + a.eps);
}

// sum the gain's gradient down columns
enum { STRETCH = 512 };                 /* rows whose columns a block sums */

/* partial (stretches, C): sums of dy xhat over stretches of rows
 * bytes: C (sizeof X + sizeof T) a row
 * grid: C / 32 x stretches, block 32 x 32 */
template <class X, class T>
__global__ __launch_bounds__(1024) void gain_columns(NormGradient<X, T> a)
{
	__shared__ float share[32][32];
	const size_t column = blockIdx.x * (size_t)32 + threadIdx.x;
	const size_t first = blockIdx.y * (size_t)STRETCH;
	const size_t end = first + STRETCH < a.rows ? first + STRETCH : a.rows;
	float dg = 0;
	if (column < a.C)
		#pragma unroll 4
		for (size_t row = first + threadIdx.y; row < end; row += 32)
			dg += widen(a.dy[row * a.dy_row + column])
				* (widen(a.sum[row * a.x_row + column]) * a.rho[row]);
	share[threadIdx.y][threadIdx.x] = dg;
	__syncthreads();
	if (threadIdx.y != 0 || column >= a.C)
		return;
	for (int i = 1; i < 32; i++)
		dg += share[i][threadIdx.x];
	a.partial[blockIdx.y * a.C + column] = dg;
}

// propagate through a row in two reads
/* dsum, copy and y of a row; rho is there
 * bytes a row: C (2 (sizeof X + sizeof T)) read, and what is written
 * grid: rows, block: whole warps */
template <class X, class T, int N>
__global__ __launch_bounds__(512) void norm_backward_read_twice(
	NormGradient<X, T> a)
{
	const size_t row = blockIdx.x;
	const size_t start = threadIdx.x * (size_t)N, step = blockDim.x * (size_t)N;
	float x[N], dy[N], g[N], out[N], dot = 0;
	const auto read = [&](size_t j) {
		load(x, a.sum + row * a.x_row + j);
		load(dy, a.dy + row * a.dy_row + j);
		a.g.read(g, j);
	};
	for (size_t j = start; j < a.C; j += step) {
		read(j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			dot += g[i] * dy[i] * x[i];
	}
	const float rho = a.rho[row], along = sum_of_row(dot) * rho / a.C;
	for (size_t j = start; j < a.C; j += step) {
		read(j);
		// write a pack of the row's gradients
		#pragma unroll
		for (int i = 0; i < N; i++)
			out[i] = 0;
		if (!a.fresh)
			load(out, a.dsum + row * a.dx_row + j);
		#pragma unroll
		for (int i = 0; i < N; i++) {
			const float xhat = x[i] * rho;
			out[i] += rho * (g[i] * dy[i] - xhat * along);
			x[i] = xhat * g[i];
		}
		store(a.dsum + row * a.dx_row + j, out);
		if (a.copy)
			store(a.copy + row * a.C + j, out);
		if (a.y)
			store(a.y + row * a.C + j, x);
	}
}

// bound the scratch of a norm
extern "C" size_t cuda_rmsnorm_scratch(Device *d, const NormBackward *b,
	size_t rows, size_t C)
{
	enum { THREADS = 2048, ROUNDED = 4 * 64 };
	const int pack = b->sum.type == BF16 || b->sum.type == FP16 ? 8 : 4;
	size_t most = 0;
	for (int N : { 1, pack }) {
		const NormPlan plan = norm_plan(b->version, true, C, N);
		size_t partial = (rows + STRETCH - 1) / STRETCH;
		if (plan.per > 0)
			partial = (size_t)cuda_multiprocessors(d) * THREADS / plan.threads;
		if (plan.threads && partial > most)
			most = partial;
	}
	const size_t slabs = (most + SLAB - 1) / SLAB, more = slabs / SLAB + 1;
	return ((most + slabs + more) * C + rows) * sizeof(float) + ROUNDED;
}

// launch the backward norm
static int shared_memory(cudaDeviceAttr of)
{
	int device = 0, nbytes = 0;
	CUDA(cudaGetDevice(&device));
	CUDA(cudaDeviceGetAttribute(&nbytes, of, device));
	return nbytes;
}

/* rows of nbytes that one block's ring holds, at most `most` */
static int rows_ahead(int most, size_t nbytes, unsigned threads)
{
	enum { THREADS = 1280, RESERVED = 2048 };       /* of a multiprocessor */
	// divide the shared memory among the blocks
	const size_t block = shared_memory(cudaDevAttrMaxSharedMemoryPerBlockOptin)
		- RESERVED;
	const size_t chip = shared_memory(
		cudaDevAttrMaxSharedMemoryPerMultiprocessor);
	const unsigned blocks = threads >= THREADS ? 1 : THREADS / threads;
	const size_t part = chip / blocks - RESERVED;
	const size_t rows = (part < block ? part : block) / nbytes;
	return rows < (size_t)most ? (int)rows : most;
}

// launch the kernel whose rows are held
/* blocks on a multiprocessor such that each has about eight rows */
static size_t blocks_worth(const Device *d, size_t rows)
{
	const size_t chip = cuda_multiprocessors(d), blocks = (rows / 4 + chip)
		/ (2 * chip);
	return blocks > 0 ? blocks : 1;
}

/* queues norm_backward, then the sum of its blocks' rows */
template <class X, class T, int N, int PER>
static void launch_held(Device *d, const NormPlan &plan,
	NormGradient<X, T> a, Array dg, double beta)
{
	const auto kernel = norm_backward<X, T, N, PER>;
	const size_t row = (size_t)PER * N * plan.threads
		* (sizeof(X) * (a.fresh ? 1 : 2) + sizeof(T));
	a.ahead = rows_ahead(plan.ahead, row, plan.threads);
	const size_t shared = row * (a.ahead ? a.ahead : 1);
	CUDA(cudaFuncSetAttribute(kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
	const unsigned blocks = resident_for(d, a.rows, kernel, plan.threads,
		shared, blocks_worth(d, a.rows));
	a.partial = (float *)cuda_scratch(d, blocks * a.C * sizeof(float),
		"norm's gain gradient");
	kernel<<<blocks, plan.threads, shared, cuda_stream(d)>>>(a);
	LAUNCHED();
	cuda_sum_rows(d, dg, beta, a.partial, blocks, a.C);
	device_free(d, a.partial);
}

// launch the kernels that read rows twice
template <class X, class T, int N>
static void launch_twice(Device *d, const NormPlan &plan,
	NormGradient<X, T> a, Array dg, double beta)
{
	float *own = NULL;
	if (a.rho == NULL) {
		own = (float *)cuda_scratch(d, a.rows * sizeof(float), "norm's factors");
		norm_factors<X, N><<<blocks_for(a.rows, 1), plan.threads, 0,
			cuda_stream(d)>>>(own, a);
		LAUNCHED();
		a.rho = own;
	}
	const dim3 threads(32, 32), grid(blocks_for(a.C, 32),
		blocks_for(a.rows, STRETCH));
	a.partial = (float *)cuda_scratch(d, grid.y * a.C * sizeof(float),
		"norm's gain gradient");
	gain_columns<X, T><<<grid, threads, 0, cuda_stream(d)>>>(a);
	LAUNCHED();
	norm_backward_read_twice<X, T, N><<<blocks_for(a.rows, 1), plan.threads, 0,
		cuda_stream(d)>>>(a);
	LAUNCHED();
	cuda_sum_rows(d, dg, beta, a.partial, grid.y, a.C);
	device_free(d, a.partial);
	device_free(d, own);
}

// call a launcher for the plan of a width
template <class X, class T, int N, int WIDER>
static void launch(Device *d, const NormPlan &plan,
	const NormGradient<X, T> &a, Array dg, double beta)
{
	if (plan.per == 0)
		launch_twice<X, T, N>(d, plan, a, dg, beta);
	else if (plan.per == 1)
		launch_held<X, T, N, 1>(d, plan, a, dg, beta);
	else
		launch_held<X, T, N, WIDER>(d, plan, a, dg, beta);
}

extern "C" void cuda_fused_rmsnorm_backward(Device *d, NormBackward b,
	size_t rows, size_t C)
{
	assert(b.dsum.type == b.sum.type);
	assert(b.copy.at == NULL || b.copy.type == b.dy.type);
	assert(b.y.at == NULL || b.y.type == b.dy.type);
	const size_t x_row = b.x_row ? b.x_row : C, dy_row = b.dy_row ? b.dy_row : C,
		dx_row = b.dx_row ? b.dx_row : C;
	with_types(b.sum.type, b.dy.type, [&](auto x, auto t) {
		using X = decltype(x);
		using T = decltype(t);
		constexpr int N = pack_of<X>();
		const bool wide = C % N == 0 && x_row % N == 0 && dy_row % N == 0
			&& dx_row % N == 0 && packs(b.dsum, N) && packs(b.dy, N)
			&& packs(b.sum, N) && packs(b.g, N) && packs(b.copy, N)
			&& packs(b.y, N);
		const NormPlan plan = norm_plan(b.version, true, C, wide ? N : 1);
		assert(plan.threads && "a version that takes rows of this width");
		const NormGradient<X, T> a = { (X *)b.dsum.at, (T *)b.copy.at,
			(T *)b.y.at, NULL, (const T *)b.dy.at, (const X *)b.sum.at,
			Gains<T>(b.g, b.dy.type), (const float *)b.rho.at, rows, C, x_row,
			dy_row, dx_row, (float)b.eps, 0, b.fresh };
		if (plan.pack == 1)
			launch<X, T, 1, 4>(d, plan, a, b.dg, b.beta);
		else
			launch<X, T, N, N == 8 ? 1 : 2>(d, plan, a, b.dg, b.beta);
	});
}
