/* norm_gradient.cuh: RMSNorm's gradients, of rows that a warp, a block or a
 * cluster takes */
#ifndef OPS_CUDA_NORM_GRADIENT_CUH
#define OPS_CUDA_NORM_GRADIENT_CUH

#include "ops/cuda/norm_ring.cuh"

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
	size_t slot_nbytes;                 /* of the ring */
	int slots;
	bool fresh, bulk;
};

// propagate gradients through the elements of a row
/* of elements begin ... begin + n - 1 of each row that this thread's block or
 * warp takes */
template <class X, class T, int N, int PER> struct RowGradient {
	const NormGradient<X, T> &a;
	const size_t begin;
	const unsigned n;
	float dg[PER][N] = {}, g[PER][N] = {};

	__device__ __forceinline__ RowGradient(const NormGradient<X, T> &a,
		size_t begin, size_t n) : a(a), begin(begin), n((unsigned)n)
	{
		each_pack<N, PER>(n, [&](int k, size_t p) {
			a.g.read(g[k], begin + p);
		});
	}

	// find the sums of a row
	/* this thread's part of the row's v x and, if rho is to be found, x x */
	__device__ __forceinline__ float2 sums(const Packs<X, N, PER> &xs,
		const Packs<T, N, PER> &dys) const
	{
		float dot = 0, squares = 0;
		#pragma unroll
		for (int k = 0; k < PER; k++) {
			float x[N], dy[N];
			xs.widen_to(x, k);
			dys.widen_to(dy, k);
			#pragma unroll
			for (int i = 0; i < N; i++) {
				dot += g[k][i] * dy[i] * x[i];
				squares += x[i] * x[i];
			}
		}
		return make_float2(dot, squares);
	}
	// write the gradients of a row
	/* writes the row's gradients, and adds to the gain's; before: what dsum holds,
	 * read unless it is overwritten; saved: rho, if it is */
	__device__ __forceinline__ void write(const Packs<X, N, PER> &xs,
		const Packs<T, N, PER> &dys, const X *before, size_t row, float saved,
		float2 sums)
	{
		const float each = 1.0f / a.C;
		const float rho = a.rho ? saved : rsqrtf(sums.y * each + a.eps);
		const float along = sums.x * rho * each;
		each_pack<N, PER>(n, [&](int k, size_t p) {
			float x[N], dy[N], dx[N] = {};
			xs.widen_to(x, k);
			dys.widen_to(dy, k);
			if (!a.fresh)
				load(dx, before + p);
			#pragma unroll
			for (int i = 0; i < N; i++) {
				const float xhat = x[i] * rho;
				dx[i] += rho * (g[k][i] * dy[i] - xhat * along);
				dg[k][i] += dy[i] * xhat;
				x[i] = xhat * g[k][i];
			}
			const size_t j = begin + p;
			store_whole(a.dsum + row * a.dx_row + j, dx);
			if (a.copy)
				store_whole(a.copy + row * a.C + j, dx);
			if (a.y)
				store_whole(a.y + row * a.C + j, x);
		});
	}
};

// propagate gradients through rows of warps
/* bytes and FLOPs as norm_backward; partial: (grid, C)
 * grid: what the chip holds; block: 32 x 4, 32 PER N >= C; shared memory: 4 C
 * floats */
template <class X, class T, int N, int PER>
__global__ __launch_bounds__(128, NORM_WARPS(PER * N) / 4)
void norm_backward_warps(NormGradient<X, T> a)
{
	RowGradient<X, T, N, PER> gradient(a, 0, a.C);
	const size_t step = gridDim.x * (size_t)blockDim.y;
	size_t row = blockIdx.x * (size_t)blockDim.y + threadIdx.y;
	for (; row < a.rows; row += step) {
		const float saved = a.rho ? a.rho[row] : 0;
		const Packs<X, N, PER> xs(a.sum + row * a.x_row, a.C);
		const Packs<T, N, PER> dys(a.dy + row * a.dy_row, a.C);
		float2 sums = gradient.sums(xs, dys);
		sums.x = warp_sum(sums.x);
		if (a.rho == NULL)
			sums.y = warp_sum(sums.y);
		gradient.write(xs, dys, a.dsum + row * a.dx_row, row, saved, sums);
	}
	// add the columns of the block's warps
	extern __shared__ float columns[];      /* (warps, C) */
	each_pack<N, PER>(a.C, [&](int k, size_t p) {
		#pragma unroll
		for (int i = 0; i < N; i++)
			columns[threadIdx.y * a.C + p + i] = gradient.dg[k][i];
	});
	__syncthreads();
	for (size_t j = threadIdx.y * 32 + threadIdx.x; j < a.C; j += blockDim.y * 32) {
		float sum = 0;
		for (unsigned warp = 0; warp < blockDim.y; warp++)
			sum += columns[warp * a.C + j];
		a.partial[blockIdx.x * a.C + j] = sum;
	}
}

// propagate gradients through rows of a ring
/* a slot: x (PER, threads, N), then what dsum holds unless fresh, then dy */
template <class X, class T, int N, int PER> struct BackwardWalk {
	const NormGradient<X, T> &a;
	const RowPart &mine;
	const size_t part;                  /* bytes of x in a slot */
	float rho_now = 0, rho_next = 0;
	RowGradient<X, T, N, PER> gradient;

	__device__ __forceinline__ BackwardWalk(const NormGradient<X, T> &a,
		const RowPart &mine)
		: a(a), mine(mine), part(sizeof(X) * PER * N * blockDim.x),
		gradient(a, mine.begin, mine.n)
	{ }

	// fetch a row to a slot
	__device__ __forceinline__ size_t dy_at() const
	{
		return a.fresh ? part : 2 * part;
	}

	__device__ __forceinline__ void fetch(const RowRing<N, PER> &ring, int s,
		size_t row) const
	{
		const size_t n = mine.n, begin = mine.begin;
		ring.copy(s, 0, a.sum + row * a.x_row + begin, n);
		ring.copy(s, dy_at(), a.dy + row * a.dy_row + begin, n);
		if (!a.fresh)
			ring.copy(s, part, a.dsum + row * a.dx_row + begin, n);
		ring.copied(s, n * (sizeof(X) * (a.fresh ? 1 : 2) + sizeof(T)));
	}
	// take a row in two passes
	__device__ __forceinline__ float2 reduce(const unsigned char *slot,
		size_t row)
	{
		if (a.rho)
			rho_next = a.rho[row];
		return gradient.sums({ (const X *)slot, mine.n },
			{ (const T *)(slot + dy_at()), mine.n });
	}

	__device__ __forceinline__ void advance() { rho_now = rho_next; }

	__device__ __forceinline__ void finish(const unsigned char *slot, size_t row,
		float2 sums)
	{
		gradient.write({ (const X *)slot, mine.n },
			{ (const T *)(slot + dy_at()), mine.n }, (const X *)(slot + part), row,
			rho_now, sums);
	}
};

/* bytes a row: C (3 sizeof X or, fresh, 2 sizeof X, + sizeof T), C sizeof T more
 * for each of copy and y; 10 C FLOPs, C fewer if fresh, C more for y and 2 C more
 * if rho is found; partial: (clusters, C)
 * grid: what the chip holds; block: whole warps, PER N threads of a cluster >= C;
 * shared memory: walk_nbytes of a.slots slots */
template <class X, class T, int N, int PER>
__global__ __launch_bounds__(512) void norm_backward(NormGradient<X, T> a)
{
	const RowPart mine(a.C, (size_t)PER * N * blockDim.x);
	BackwardWalk<X, T, N, PER> walk(a, mine);
	walk_rows<N, PER>(walk, mine, a.rows, a.slot_nbytes, a.slots, a.bulk,
		a.rho == NULL);
	each_pack<N, PER>(mine.n, [&](int k, size_t p) {
		store_whole(a.partial + mine.first * a.C + mine.begin + p,
			walk.gradient.dg[k]);
	});
}

#endif
