/* norm.cu: RMSNorm of a sum, forward */
#include "ops/cuda/norm.cuh"

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
};

// normalise rows that registers hold
constexpr int most_holding(int elements)
{
	return elements > 16 ? 512 : 1024;
}

/* bytes a row: C (sizeof x + sizeof y), with branch C (2 sizeof x + 2 sizeof y);
 * 5 C FLOPs; block: 32, several rows, or one row and whole warps;
 * PER N threads >= C */
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
			store(a.sum + row * a.C + j, held[k]);
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
		store(a.y + row * a.y_row + j, out);
	}
}

// normalise rows that are read twice
/* bytes a row: C (2 sizeof x + sizeof y), C sizeof x less if the second read
 * is of a cache; grid: rows, block: whole warps */
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
			store(a.sum + row * a.C + j, x);
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
		store(a.y + row * a.y_row + j, x);
	}
}

// launch the forward norm
/* plan.threads x plan.rows threads in a block: a multiple of 32, at most 1024 */
template <class X, class T>
static void launch(Device *d, const NormPlan &plan, const NormForwardArrays<X,
	T> &a)
{
	const dim3 block(plan.threads, plan.rows);
	const unsigned grid = blocks_for(a.rows, plan.rows);
	const auto queue = [&](auto kernel) {
		kernel<<<grid, block, 0, cuda_stream(d)>>>(a);
	};
	const auto held = [&](auto pack) {
		constexpr int N = decltype(pack)::value;
		constexpr int SOME = N == 8 ? 2 : 4;
		switch (plan.per) {
		case 0: queue(norm_read_twice<X, T, N>); break;
		case 1: queue(norm_held<X, T, N, 1>); break;
		case SOME: queue(norm_held<X, T, N, SOME>); break;
		default: queue(norm_held<X, T, N, 2 * SOME>);
		}
	};
	if (plan.pack == 1)
		held(Constant<1>());
	else
		held(Constant<pack_of<X>()>());
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
		const NormPlan plan = norm_plan(f.version, false, C, wide ? N : 1);
		assert(plan.threads && "a version that takes rows of this width");
		launch(d, plan, NormForwardArrays<X, T>{ (T *)f.y.at, (float *)f.rho.at,
			(X *)f.sum.at, (const X *)f.x.at, (const T *)f.branch.at,
			Gains<T>(f.g, f.y.type), rows, C, x_row, y_row, (float)f.eps });
	});
}
