/* norm.cu: RMSNorm of a sum, forward */
#include "ops/cuda/norm_ring.cuh"

// list the arrays of a norm
/* sum = x + branch, y = g sum rho, rho = 1/sqrt(mean(sum^2) + eps)
 * x: rows of C elements, x_row from each to the next; y: y_row; branch, sum:
 * dense; g: (C), rho: (rows) fp32; branch NULL: sum is x; rho NULL: not kept.
 * The norm is that of the sum as it is stored */
template <class X, class T> struct NormForwardArrays {
	T *y;
	float *rho;
	X *sum;
	const X *x;
	const T *branch;
	Gains<T> g;
	size_t rows, C, x_row, y_row;
	float eps;
	size_t slot_nbytes;                 /* of a ring */
	int slots;
	bool bulk;
};

// normalise rows that registers hold
constexpr int most_holding(int elements)
{
	return elements > 16 ? 512 : 1024;
}

/* bytes a row: C (sizeof x + sizeof y), with branch C (2 sizeof x + 2 sizeof y);
 * 4 C FLOPs, with branch 5 C; block: 32, several rows, or one row and whole
 * warps; PER N threads >= C */
template <class X, class T, int N, int PER>
__global__ __launch_bounds__(most_holding(N * PER)) void norm_held(
	NormForwardArrays<X, T> a)
{
	const size_t row = blockIdx.x * (size_t)blockDim.y + threadIdx.y;
	if (row >= a.rows)
		return;                         /* a warp that has a row of its own */
	float held[PER][N];
	// load the row's packs
	#pragma unroll
	for (int k = 0; k < PER; k++) {
		const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
		#pragma unroll
		for (int i = 0; i < N; i++)
			held[k][i] = 0;
		if (j < a.C)
			load(held[k], a.x + row * a.x_row + j);
	}
	if (a.branch) {
		// add the branch, and write the sum
		float more[PER][N];
		#pragma unroll
		for (int k = 0; k < PER; k++) {
			const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
			if (j < a.C)
				load(more[k], a.branch + row * a.C + j);
		}
		#pragma unroll
		for (int k = 0; k < PER; k++) {
			const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
			if (j >= a.C)
				break;
			#pragma unroll
			for (int i = 0; i < N; i++)
				held[k][i] = widen(narrow<X>(held[k][i] + more[k][i]));
			store_whole(a.sum + row * a.C + j, held[k]);
		}
	}
	float squares = 0;
	#pragma unroll
	for (int k = 0; k < PER; k++)
		#pragma unroll
		for (int i = 0; i < N; i++)
			squares += held[k][i] * held[k][i];
	const float rho = rsqrtf(sum_of_row(squares) / a.C + a.eps);
	if (threadIdx.x == 0 && a.rho)
		a.rho[row] = rho;
	// scale the packs by gain and factor, and write them
	#pragma unroll
	for (int k = 0; k < PER; k++) {
		const size_t j = ((size_t)k * blockDim.x + threadIdx.x) * N;
		if (j >= a.C)
			break;
		float gain[N], out[N];
		a.g.read(gain, j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			out[i] = held[k][i] * rho * gain[i];
		store_whole(a.y + row * a.y_row + j, out);
	}
}

// normalise rows of a ring
/* a slot: x (PER, threads, N), then the branch if there is one */
template <class X, class T, int N, int PER> struct ForwardWalk {
	const NormForwardArrays<X, T> &a;
	const RowPart &mine;
	const size_t part;                  /* bytes of x in a slot */

	__device__ __forceinline__ void fetch(const RowRing<N, PER> &ring, int s,
		size_t row) const
	{
		const size_t n = mine.n, begin = mine.begin;
		ring.copy(s, 0, a.x + row * a.x_row + begin, n);
		if (a.branch)
			ring.copy(s, part, a.branch + row * a.C + begin, n);
		ring.copied(s, n * (sizeof(X) + (a.branch ? sizeof(T) : 0)));
	}

	/* a pack of x, and then of x + branch, rounded as the sum is stored */
	__device__ __forceinline__ void add(float (&x)[N], const unsigned char *slot,
		size_t p) const
	{
		float more[N];
		load(more, (const T *)(slot + part) + p);
		#pragma unroll
		for (int i = 0; i < N; i++)
			x[i] = widen(narrow<X>(x[i] + more[i]));
	}

	// reduce a row, and write it
	__device__ __forceinline__ float2 reduce(const unsigned char *slot,
		size_t row) const
	{
		float squares = 0;
		const Packs<X, N, PER> xs((const X *)slot, mine.n);
		each_pack<N, PER>(mine.n, [&](int k, size_t p) {
			float x[N];
			xs.widen_to(x, k);
			if (a.branch)
				add(x, slot, p);
			#pragma unroll
			for (int i = 0; i < N; i++)
				squares += x[i] * x[i];
		});
		return make_float2(squares, 0);
	}

	__device__ __forceinline__ void advance() { }

	__device__ __forceinline__ void finish(const unsigned char *slot, size_t row,
		float2 sums) const
	{
		const float rho = rsqrtf(sums.x / a.C + a.eps);
		if (threadIdx.x == 0 && mine.rank == 0 && a.rho)
			a.rho[row] = rho;
		const Packs<X, N, PER> xs((const X *)slot, mine.n);
		each_pack<N, PER>(mine.n, [&](int k, size_t p) {
			const size_t j = mine.begin + p;
			float x[N], gain[N];
			xs.widen_to(x, k);
			a.g.read(gain, j);
			if (a.branch) {
				add(x, slot, p);
				store_whole(a.sum + row * a.C + j, x);
			}
			#pragma unroll
			for (int i = 0; i < N; i++)
				x[i] *= rho * gain[i];
			store_whole(a.y + row * a.y_row + j, x);
		});
	}
};

/* bytes a row: C (sizeof x + sizeof y), with branch C (2 sizeof x + 2 sizeof y);
 * 4 C FLOPs, with branch 5 C; grid: clusters that the chip holds; block: whole
 * warps, PER N threads of a cluster >= C; shared memory: that of walk_of */
template <class X, class T, int N, int PER>
__global__ __launch_bounds__(512) void norm_walking(NormForwardArrays<X, T> a)
{
	const RowPart mine(a.C, (size_t)PER * N * blockDim.x);
	ForwardWalk<X, T, N, PER> walk = { a, mine, sizeof(X) * PER * N
		* blockDim.x };
	walk_rows<N, PER>(walk, mine, a.rows, a.slot_nbytes, a.slots, a.bulk, false);
}

// normalise rows that are read twice
/* bytes a row: C (2 sizeof x + sizeof y), C sizeof x less if the second read
 * is of a cache; 4 C FLOPs, with branch 5 C; grid: rows, block: whole warps */
template <class X, class T, int N>
__global__ __launch_bounds__(512) void norm_read_twice(NormForwardArrays<X, T> a)
{
	const size_t row = blockIdx.x;
	const size_t start = threadIdx.x * (size_t)N, step = blockDim.x * (size_t)N;
	float squares = 0, x[N], other[N];
	for (size_t j = start; j < a.C; j += step) {
		load(x, a.x + row * a.x_row + j);
		if (a.branch) {
			// add a pack of the branch
			load(other, a.branch + row * a.C + j);
			#pragma unroll
			for (int i = 0; i < N; i++)
				x[i] = widen(narrow<X>(x[i] + other[i]));
			store_whole(a.sum + row * a.C + j, x);
		}
		#pragma unroll
		for (int i = 0; i < N; i++)
			squares += x[i] * x[i];
	}
	const float rho = rsqrtf(sum_of_row(squares) / a.C + a.eps);
	if (threadIdx.x == 0 && a.rho)
		a.rho[row] = rho;
	const X *again = a.branch ? a.sum + row * a.C : a.x + row * a.x_row;
	for (size_t j = start; j < a.C; j += step) {
		load(x, again + j);
		a.g.read(other, j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			x[i] *= rho * other[i];
		store_whole(a.y + row * a.y_row + j, x);
	}
}

// launch the forward norm
/* bytes of a slot: x and, if there is one, the branch */
template <class X, class T>
static size_t slot_of(const NormPlan &plan, bool branch)
{
	return (size_t)plan.per * plan.pack * plan.threads * (sizeof(X)
		+ (branch ? sizeof(T) : 0));
}

template <class X, class T, int N, int PER>
static void launch_walking(Device *d, const NormPlan &plan,
	NormForwardArrays<X, T> a)
{
	a.slot_nbytes = slot_of<X, T>(plan, a.branch);
	WalkLaunch w = walk_of(d, plan, a.slot_nbytes);
	a.slots = w.slots;
	w.clusters = walk_clusters(d, plan, norm_walking<X, T, N, PER>, w, w.shared,
		a.rows);
	launch_walk(d, plan, norm_walking<X, T, N, PER>, w, a);
}

/* plan.threads x plan.rows threads in a block: a multiple of 32, at most 1024 */
template <class X, class T, int N>
static void launch(Device *d, const NormPlan &plan, NormForwardArrays<X, T> a)
{
	const auto queue = [&](auto kernel) {
		kernel<<<blocks_for(a.rows, plan.rows), dim3(plan.threads, plan.rows), 0,
			cuda_stream(d)>>>(a);
	};
	constexpr int SOME = N == 8 ? 2 : 4;
	if (plan.slots > 0)
		launch_walking<X, T, N, N == 1 ? 8 : 4>(d, plan, a);
	else if (plan.per == 0)
		queue(norm_read_twice<X, T, N>);
	else if (plan.per == 1)
		queue(norm_held<X, T, N, 1>);
	else if (plan.per == SOME)
		queue(norm_held<X, T, N, SOME>);
	else
		queue(norm_held<X, T, N, 2 * SOME>);
	LAUNCHED();
}

extern "C" void cuda_fused_rmsnorm_forward(Device *d, NormForward f,
	size_t rows, size_t C)
{
	assert(f.branch.at == NULL || f.branch.type == f.y.type);
	const size_t x_row = f.x_row ? f.x_row : C, y_row = f.y_row ? f.y_row : C;
	with_types(f.x.type, f.y.type, [&](auto x, auto t) {
		using X = decltype(x);
		using T = decltype(t);
		constexpr int N = pack_of<X>();
		const bool wide = C % N == 0 && x_row % N == 0 && y_row % N == 0
			&& packs(f.x, N) && packs(f.y, N) && packs(f.g, N)
			&& (f.branch.at == NULL || (packs(f.branch, N) && packs(f.sum, N)));
		NormPlan plan = norm_plan(f.version, false, C, wide ? N : 1);
		assert(plan.threads && "a version that takes rows of this width");
		if (plan.slots > 0
			&& walk_of(d, plan, slot_of<X, T>(plan, f.branch.at)).slots < 2)
			plan = norm_plan(NORM_LOOPED, false, C, wide ? N : 1);
		const bool bulk = plan.pack > 1 && has_clusters(d)
			&& moves_in_bulk(f.x, C, x_row)
			&& (f.branch.at == NULL || moves_in_bulk(f.branch, C, C));
		const NormForwardArrays<X, T> a = { (T *)f.y.at, (float *)f.rho.at,
			(X *)f.sum.at, (const X *)f.x.at, (const T *)f.branch.at,
			Gains<T>(f.g, f.y.type), rows, C, x_row, y_row, (float)f.eps, 0, 0,
			bulk };
		if (plan.pack == 1)
			launch<X, T, 1>(d, plan, a);
		else
			launch<X, T, N>(d, plan, a);
	});
}
