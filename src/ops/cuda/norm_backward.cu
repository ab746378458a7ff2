/* norm_backward.cu: RMSNorm's gradients, and sums over rows */
#include "ops/cuda/norm_gradient.cuh"

// sum the rows of partial results
enum { SLAB = 2048 };                   /* rows that a block sums */

/* to each thread of the first row of the block, the sum over its column;
 * share: blockDim.x blockDim.y elements */
__device__ inline float sum_of_column(float x, float *share)
{
	float *mine = share + threadIdx.y * blockDim.x + threadIdx.x;
	*mine = x;
	for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.y < half)
			*mine += mine[half * blockDim.x];
	}
	return *mine;
}

/* sum (slabs, C) = beta sum + the sum of each slab of rows of partial (rows, C),
 * summed in fp32, rounded once to T
 * bytes: C (4 rows + sizeof(T) slabs), sizeof(T) C more with beta; C rows FLOPs
 * grid: stretches of columns x slabs, block: columns x 1024 / columns */
template <class T>
__global__ __launch_bounds__(1024) void sum_rows(T *sum, float beta,
	const float *partial, size_t rows, size_t C)
{
	__shared__ float share[1024];
	const size_t columns = (C + blockDim.x - 1) / blockDim.x;
	const size_t slab = blockIdx.x / columns;
	const size_t column = blockIdx.x % columns * blockDim.x + threadIdx.x;
	const size_t first = slab * SLAB;
	const size_t end = first + SLAB < rows ? first + SLAB : rows;
	float x = 0;
	if (column < C)
		#pragma unroll 8
		for (size_t row = first + threadIdx.y; row < end; row += blockDim.y)
			x += partial[row * C + column];
	x = sum_of_column(x, share);
	if (threadIdx.y != 0 || column >= C)
		return;
	T *to = sum + slab * C + column;
	*to = narrow<T>(beta == 0 ? x : beta * widen(*to) + x);
}

extern "C" void cuda_sum_rows(Device *d, Array sum, double beta,
	const float *partial, size_t rows, size_t C)
{
	/* narrow stretches where wide ones would leave multiprocessors idle */
	const unsigned columns = C < 32 * (size_t)cuda_multiprocessors(d) ? 8 : 32;
	const dim3 threads(columns, 1024 / columns);
	const size_t slabs = (rows + SLAB - 1) / SLAB;
	const bool whole = slabs == 1;
	Array to = sum;
	if (!whole)
		to = (Array){ cuda_scratch(d, slabs * C * sizeof(float), "slabs"), FP32 };
	with_type(to.type, [&](auto t) {
		sum_rows<<<blocks_for(blocks_for(C, columns) * slabs, 1), threads, 0,
			cuda_stream(d)>>>((decltype(t) *)to.at, whole ? (float)beta : 0,
			partial, rows, C);
	});
	LAUNCHED();
	if (whole)
		return;
	cuda_sum_rows(d, sum, beta, (const float *)to.at, slabs, C);
	device_free(d, to.at);
}

// propagate gradients through rows that are read twice
/* rho of each row; bytes: C sizeof X a row; 2 C FLOPs; grid: rows */
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
 * bytes: C (sizeof X + sizeof T) a row; 3 C FLOPs
 * grid: C / 32 for each stretch, block 32 x 32 */
template <class X, class T>
__global__ __launch_bounds__(1024) void gain_columns(NormGradient<X, T> a)
{
	__shared__ float share[1024];
	const size_t columns = (a.C + 31) / 32, stretch = blockIdx.x / columns;
	const size_t column = blockIdx.x % columns * 32 + threadIdx.x;
	const size_t first = stretch * STRETCH;
	const size_t end = first + STRETCH < a.rows ? first + STRETCH : a.rows;
	float dg = 0;
	if (column < a.C)
		#pragma unroll 4
		for (size_t row = first + threadIdx.y; row < end; row += 32)
			dg += widen(a.dy[row * a.dy_row + column])
				* (widen(a.sum[row * a.x_row + column]) * a.rho[row]);
	dg = sum_of_column(dg, share);
	if (threadIdx.y == 0 && column < a.C)
		a.partial[stretch * a.C + column] = dg;
}

// propagate through a row in two reads
/* dsum, copy and y of a row; rho is there
 * bytes a row: C (2 (sizeof X + sizeof T)) read, and what is written; 9 C FLOPs
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
		store_whole(a.dsum + row * a.dx_row + j, out);
		if (a.copy)
			store_whole(a.copy + row * a.C + j, out);
		if (a.y)
			store_whole(a.y + row * a.C + j, x);
	}
}

// plan a backward pass on this GPU
/* bytes of a slot: x, dy and, unless it is overwritten, dsum */
static size_t slot_of(const NormPlan &plan, const NormBackward &b)
{
	return (size_t)plan.per * plan.pack * plan.threads * (type_size(b.sum.type)
		* (b.fresh ? 1 : 2) + type_size(b.dy.type));
}

/* the plan for packs of N; rows are read twice where this GPU cannot walk so */
static NormPlan plan_backward(const Device *d, const NormBackward &b, size_t C,
	int N)
{
	const NormPlan plan = norm_plan(b.version, true, C, N);
	const bool walks = plan.slots == 0 || plan.threads == 0
		|| walk_of(d, plan, slot_of(plan, b)).slots >= 2;
	return walks ? plan : norm_plan(NORM_LOOPED, true, C, N);
}

// bound the scratch of a norm
extern "C" size_t cuda_rmsnorm_scratch(Device *d, const NormBackward *b,
	size_t rows, size_t C)
{
	enum { THREADS = 2048, ROUNDED = 4 * 64 };
	const int pack = b->sum.type == BF16 || b->sum.type == FP16 ? 8 : 4;
	size_t most = 0;
	for (int N : { 1, pack }) {
		const NormPlan plan = plan_backward(d, *b, C, N);
		size_t partial = (rows + STRETCH - 1) / STRETCH;
		if (plan.per > 0 && plan.threads)
			partial = (size_t)cuda_multiprocessors(d) * THREADS
				/ (plan.threads * plan.rows * plan.blocks);
		if (plan.threads && partial > most)
			most = partial;
	}
	const size_t slabs = (most + SLAB - 1) / SLAB, more = slabs / SLAB + 1;
	return ((most + slabs + more) * C + rows) * sizeof(float) + ROUNDED;
}

// launch the backward norm
/* gives a n rows of partial sums, which f's kernels fill, and adds them to dg */
template <class X, class T, class F> static void with_partial(Device *d,
	NormGradient<X, T> &a, size_t n, Array dg, double beta, F f)
{
	a.partial = (float *)cuda_scratch(d, n * a.C * sizeof(float),
		"norm's gain gradient");
	f();
	cuda_sum_rows(d, dg, beta, a.partial, n, a.C);
	device_free(d, a.partial);
}

template <class X, class T, int N, int PER>
static void launch_walking(Device *d, const NormPlan &plan, WalkLaunch w,
	NormGradient<X, T> a, Array dg, double beta)
{
	const auto kernel = norm_backward<X, T, N, PER>;
	a.slots = w.slots;
	const size_t ring = (a.C + plan.blocks - 1) / plan.blocks * w.slots
		* (sizeof(X) * (a.fresh ? 1 : 2) + sizeof(T));
	w.clusters = walk_clusters(d, plan, kernel, w, ring, a.rows);
	with_partial(d, a, w.clusters, dg, beta, [&] {
		launch_walk(d, plan, kernel, w, a);
	});
}

// launch the kernel of warps
template <class X, class T, int N, int PER>
static void launch_warps(Device *d, const NormPlan &plan, NormGradient<X, T> a,
	Array dg, double beta)
{
	const auto kernel = norm_backward_warps<X, T, N, PER>;
	const size_t shared = plan.rows * a.C * sizeof(float),
		worth = norm_blocks(&plan, 0, a.rows, cuda_multiprocessors(d));
	const unsigned blocks = resident_for(d, blocks_for(a.rows, plan.rows),
		kernel, plan.threads * plan.rows, shared, worth);
	with_partial(d, a, blocks, dg, beta, [&] {
		kernel<<<blocks, dim3(plan.threads, plan.rows), shared,
			cuda_stream(d)>>>(a);
		LAUNCHED();
	});
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
	const size_t stretches = blocks_for(a.rows, STRETCH);
	with_partial(d, a, stretches, dg, beta, [&] {
		gain_columns<X, T><<<blocks_for(stretches * blocks_for(a.C, 32), 1),
			dim3(32, 32), 0, cuda_stream(d)>>>(a);
		LAUNCHED();
		norm_backward_read_twice<X, T, N><<<blocks_for(a.rows, 1),
			plan.threads, 0, cuda_stream(d)>>>(a);
		LAUNCHED();
	});
	device_free(d, own);
}

// call a launcher for the plan of a width
/* N 1: four or eight elements a thread; else one, two or four packs */
template <class X, class T, int N>
static void launch(Device *d, const NormPlan &plan, const NormBackward &b,
	NormGradient<X, T> a)
{
	constexpr int SOME = N == 8 ? 2 : 4;
	const auto walking = [&](auto per) {
		a.slot_nbytes = slot_of(plan, b);
		launch_walking<X, T, N, decltype(per)::value>(d, plan,
			walk_of(d, plan, a.slot_nbytes), a, b.dg, b.beta);
	};
	const auto warps = [&](auto per) {
		launch_warps<X, T, N, decltype(per)::value>(d, plan, a, b.dg, b.beta);
	};
	if (plan.per == 0)
		launch_twice<X, T, N>(d, plan, a, b.dg, b.beta);
	else if (plan.slots == 0 && plan.per == 1)
		warps(Constant<1>());
	else if (plan.slots == 0 && plan.per == SOME)
		warps(Constant<SOME>());
	else if (plan.slots == 0)
		warps(Constant<2 * SOME>());
	else if (N > 1 && plan.per == 1)
		walking(Constant<N == 1 ? 4 : 1>());
	else if (N > 1 && plan.per == 2)
		walking(Constant<N == 1 ? 4 : 2>());
	else if (plan.per == 4)
		walking(Constant<4>());
	else
		walking(Constant<N == 1 ? 8 : 4>());
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
		const NormPlan plan = plan_backward(d, b, C, wide ? N : 1);
		assert(plan.threads && "a version that takes rows of this width");
		const bool bulk = plan.slots > 0 && plan.pack > 1
			&& has_clusters(d)
			&& moves_in_bulk(b.sum, C, x_row) && moves_in_bulk(b.dy, C, dy_row)
			&& (b.fresh || moves_in_bulk(b.dsum, C, dx_row));
		const NormGradient<X, T> a = { (X *)b.dsum.at, (T *)b.copy.at,
			(T *)b.y.at, NULL, (const T *)b.dy.at, (const X *)b.sum.at,
			Gains<T>(b.g, b.dy.type), (const float *)b.rho.at, rows, C, x_row,
			dy_row, dx_row, (float)b.eps, 0, 0, b.fresh, bulk };
		if (plan.pack == 1)
			launch<X, T, 1>(d, plan, b, a);
		else
			launch<X, T, N>(d, plan, b, a);
	});
}
