/* fp8.cu: casts to FP8 with their transposes, maxima, and what undoes them */
#include "ops/cuda/elementary.cuh"
#include "ops/cuda/fp8_tile.cuh"
#include "ops/cuda/gate.cuh"

// choose the blocks of a cast
/* the strips that a thread makes of what it reads, side by side */
template <class T, Fp8Source SOURCE>
constexpr int HALVES = WHOLE<T> && SOURCE == FP8_SWIGLU_GRADIENT ? 2 : 1;
template <class T, Fp8Source SOURCE, bool BY_ROWS = false>
constexpr int THREADS = HALVES<T, SOURCE> == 2 && !BY_ROWS ? 1024 : 512;
/* blocks that share an SM */
template <class T, Fp8Source SOURCE, bool BY_ROWS = false>
constexpr int RESIDENT = WHOLE<T> && !BY_ROWS ? 1024 / THREADS<T, SOURCE> : 1;

// load what is cast
__device__ inline float rounded_to(Type type, float x)
{
	return type == BF16 ? widen(narrow<bf16>(x)) : type == FP16
		? widen(narrow<fp16>(x)) : x;
}

/* element (i, j) of the matrix that is cast */
template <Fp8Source SOURCE>
__device__ inline float element(const Fp8Cast &c, size_t i, size_t j)
{
	float a[1], b[1], x[1];
	if (SOURCE == FP8_PLAIN) {
		load(x, c.x, i * c.columns + j);
		return x[0];
	}
	const size_t F = SOURCE == FP8_SWIGLU ? c.columns : c.columns / 2,
		k = j < F ? j : j - F;
	load(a, c.ab, 2 * i * F + k);
	load(b, c.ab, (2 * i + 1) * F + k);
	if (SOURCE == FP8_SWIGLU)
		return rounded_to(c.ab.type, gated(a[0], b[0]));
	load(x, c.x, i * F + k);
	const GateGradient g = gate_gradient_of(a[0], b[0], x[0]);
	return rounded_to(c.ab.type, j < F ? g.a : g.b);
}

template <Fp8Source SOURCE, int THREADS>
__device__ inline void load_strips(Strip<float, THREADS> (&x)[1],
	const Fp8Cast &c, TilePlace at)
{
	#pragma unroll
	for (int k = 0; k < x[0].EACH; k++, at.i += x[0].STEP)
		#pragma unroll
		for (int n = 0; n < UNIT; n++)
			x[0].word[k][n] = at.i < c.rows && at.j + n < c.columns
				? __float_as_uint(element<SOURCE>(c, at.i, at.j + n)) : 0;
}

// load a strip of packs
template <Fp8Source SOURCE, int N, int THREADS>
__device__ inline void load_strips(Strip<bf16, THREADS> (&x)[N],
	const Fp8Cast &c, TilePlace at)
{
	constexpr int STEP = THREADS / 32;
	const size_t F = c.columns / N;
	const int rows = at.j < F ? remaining(c.rows, at.i) : 0;
	const bf16 *in = (const bf16 *)c.x.at + at.i * F + at.j,
		*ab = (const bf16 *)c.ab.at + 2 * at.i * F + at.j;
	#pragma unroll
	for (int half = 0; half < N; half++)
		x[half] = {};
	#pragma unroll
	for (int k = 0; k < x[0].EACH; k++, in += STEP * F, ab += 2 * STEP * F) {
		float a[UNIT], b[UNIT], d[UNIT] = {};
		if (k * STEP >= rows)
			continue;
		if (SOURCE == FP8_PLAIN) {
			*(uint2 *)x[0].word[k] = *(const uint2 *)in;
			continue;
		}
		load(a, ab);
		load(b, ab + F);
		if (SOURCE == FP8_SWIGLU_GRADIENT)
			load(d, in);
		#pragma unroll
		for (int n = 0; n < UNIT; n += 2) {
			const GateGradient g = gate_gradient_of(a[n], b[n], d[n]),
				h = gate_gradient_of(a[n + 1], b[n + 1], d[n + 1]);
			x[0].word[k][n / 2] = N == 1 ? packed(g.h, h.h) : packed(g.a, h.a);
			x[N - 1].word[k][n / 2] = N == 1 ? packed(g.h, h.h)
				: packed(g.b, h.b);
		}
	}
}

// find maxima of a tile
template <int THREADS, class T>
__device__ inline void raise_rows(const Fp8Cast &c,
	const Strip<T, THREADS> &x, TilePlace at)
{
	__shared__ float most[FP8_TILE];
	const int lane = threadIdx.x % 32;
	__syncthreads();                    /* an earlier tile has been read */
	if (threadIdx.x < FP8_TILE)
		most[threadIdx.x] = 0;
	__syncthreads();
	#pragma unroll
	for (int k = 0; k < x.EACH; k++) {
		float row = 0;
		#pragma unroll
		for (int n = 0; n < UNIT; n++)
			row = fmaxf(row, fp8_magnitude(value(x, k, n)));
		row = warp_max(row);
		if (lane == 0 && at.i + k * x.STEP < c.rows)
			raise(c.maxima.at, at.i + k * x.STEP, row);
	}
	#pragma unroll
	for (int n = 0; n < UNIT; n++) {
		float column = 0;
		#pragma unroll
		for (int k = 0; k < x.EACH; k++)
			column = fmaxf(column, fp8_magnitude(value(x, k, n)));
		raise(most, lane * UNIT + n, column);
	}
	__syncthreads();
	const size_t j = at.j - lane * UNIT + threadIdx.x;
	if (threadIdx.x < FP8_TILE && j < c.columns)
		raise(c.maxima.at, c.rows + j, most[threadIdx.x]);
}

/* raises the maxima of a matrix; bytes: those of the source
 * grid: tiles of a row of a half, rows of tiles; block THREADS */
template <class T, Fp8Source SOURCE>
__global__ __launch_bounds__(THREADS<T, SOURCE>, RESIDENT<T, SOURCE>)
void maxima_kernel(const __grid_constant__ Fp8Cast c)
{
	constexpr int N = HALVES<T, SOURCE>;
	Strip<T, THREADS<T, SOURCE>> x[N];
	const TilePlace at = place();
	load_strips<SOURCE>(x, c, at);
	float most = 0;
	#pragma unroll
	for (int half = 0; half < N; half++)
		if (c.scaling == FP8_ROW)
			raise_rows(c, x[half], { at.i, at.j + half * (c.columns / N) });
		else
			most = fmaxf(most, largest_of(x[half]));
	if (c.scaling == FP8_ROW)
		return;
	most = block_max(most);
	if (threadIdx.x == 0)
		raise(c.maxima.at, 0, most);
}

// cast a tile to FP8
/* both copies of c, which is scaled by rows or not
 * bytes: those of the source and of the codes
 * grid: tiles of a row of a half, rows of tiles; block THREADS */
template <class T, Fp8Source SOURCE, bool BY_ROWS>
__global__ __launch_bounds__(THREADS<T, SOURCE, BY_ROWS>,
	RESIDENT<T, SOURCE, BY_ROWS>)
void cast_kernel(const __grid_constant__ Fp8Cast c)
{
	constexpr int N = HALVES<T, SOURCE>;
	Strip<T, THREADS<T, SOURCE, BY_ROWS>> x[N];
	const TilePlace at = place();
	float most = 0;
	load_strips<SOURCE>(x, c, at);
	#pragma unroll
	for (int half = 0; half < N; half++)
		most = fmaxf(most, cast_strip<BY_ROWS>(c, x[half], { at.i, at.j
			+ half * (c.columns / N) }));
	note_seen(c, most);
}

// launch a cast to FP8
template <class T, Fp8Source SOURCE>
static void launch_cast(Device *d, const Fp8Cast &c)
{
	const dim3 grid = tiles_of(c, c.columns / HALVES<T, SOURCE>);
	if (!c.given && c.scaling != FP8_BLOCK) {
		CUDA(cudaMemsetAsync(c.maxima.at, 0, sizeof(float)
			* fp8_groups(c.scaling, c.rows, c.columns), cuda_stream(d)));
		maxima_kernel<T, SOURCE><<<grid, THREADS<T, SOURCE>, 0,
			cuda_stream(d)>>>(c);
		LAUNCHED();
	}
	if (c.scaling == FP8_ROW)
		cast_kernel<T, SOURCE, true><<<grid, THREADS<T, SOURCE, true>, 0,
			cuda_stream(d)>>>(c);
	else
		cast_kernel<T, SOURCE, false><<<grid, THREADS<T, SOURCE>, 0,
			cuda_stream(d)>>>(c);
	LAUNCHED();
}

/* is a an array of bf16 in whole packs, or none? */
static bool in_packs(Array a)
{
	return a.at == NULL || (a.type == BF16 && packs(a, UNIT));
}

template <Fp8Source SOURCE>
static void launch_by_width(Device *d, const Fp8Cast &c)
{
	const size_t unit = SOURCE == FP8_SWIGLU_GRADIENT ? 2 * FP8_TILE : UNIT;
	if (c.rows % UNIT == 0 && c.columns % unit == 0 && in_packs(c.x)
		&& in_packs(c.ab) && aligned(c.straight.codes.at, UNIT)
		&& aligned(c.turned.codes.at, UNIT))
		launch_cast<bf16, SOURCE>(d, c);
	else
		launch_cast<float, SOURCE>(d, c);
}

extern "C" void cuda_fp8_cast(Device *d, Fp8Cast c)
{
	switch (c.source) {
	case FP8_SWIGLU: launch_by_width<FP8_SWIGLU>(d, c); break;
	case FP8_SWIGLU_GRADIENT: launch_by_width<FP8_SWIGLU_GRADIENT>(d, c); break;
	default: launch_by_width<FP8_PLAIN>(d, c);
	}
}

// turn codes back into numbers
/* x (rows, k) = codes times scales; bytes: 5 an element; block 256 */
__global__ __launch_bounds__(MAP_THREADS) void numbers_kernel(float *x,
	Fp8Matrix m)
{
	const size_t at = blockIdx.x * (size_t)MAP_THREADS + threadIdx.x;
	if (at >= m.rows * m.k)
		return;
	const __half_raw half = __nv_cvt_fp8_to_halfraw(
		((const __nv_fp8_storage_t *)m.codes.at)[at],
		m.codes.type == E4M3 ? __NV_E4M3 : __NV_E5M2);
	x[at] = __half2float(half) * ((const float *)m.scale.at)[fp8_scale_at(&m,
		at / m.k, at % m.k)];
}

extern "C" void cuda_fp8_numbers(Device *d, Array x, Fp8Matrix m)
{
	assert(x.type == FP32);
	numbers_kernel<<<blocks_for(m.rows * m.k, MAP_THREADS), MAP_THREADS, 0,
		cuda_stream(d)>>>((float *)x.at, m);
	LAUNCHED();
}

// move a history on, on a GPU
/* a thread for each site; bytes: 4 (2 window + ranks) a site */
__global__ __launch_bounds__(MAP_THREADS) void advance_kernel(float *maxima,
	float *history, int window, float *seen, int ranks, size_t sites)
{
	const size_t i = blockIdx.x * (size_t)MAP_THREADS + threadIdx.x;
	float newest = 0;
	if (i >= sites)
		return;
	for (int r = 0; r < ranks; r++) {
		newest = fmaxf(newest, seen[r * sites + i]);
		seen[r * sites + i] = 0;
	}
	float most = newest;
	for (int w = window - 1; w > 0; w--) {
		history[w * sites + i] = history[(w - 1) * sites + i];
		most = fmaxf(most, history[w * sites + i]);
	}
	history[i] = newest;
	maxima[i] = most;
}

extern "C" void cuda_fp8_advance(Device *d, Array maxima, Array history,
	int window, Array seen, int ranks, size_t sites)
{
	advance_kernel<<<blocks_for(sites, MAP_THREADS), MAP_THREADS, 0,
		cuda_stream(d)>>>((float *)maxima.at, (float *)history.at, window,
		(float *)seen.at, ranks, sites);
	LAUNCHED();
}
