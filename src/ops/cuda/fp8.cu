/* fp8.cu: casts to FP8 with their transposes, maxima, and what undoes them */
#include <cuda_fp8.h>

#include "ops/cuda/elementary.cuh"
#include "ops/cuda/gate.cuh"
#include "ops/fp8.h"

enum { SQUARE = 8, CAST_THREADS = 256 };
static_assert(CAST_THREADS * SQUARE * SQUARE == FP8_TILE * FP8_TILE,
	"threads cover a tile");

// load what is cast
__device__ inline float rounded_to(Type type, float x)
{
	return type == BF16 ? widen(narrow<bf16>(x)) : type == FP16
		? widen(narrow<fp16>(x)) : x;
}

/* N elements of row i from column j on */
template <Fp8Source SOURCE, int N>
__device__ inline void load_source(float (&x)[N], const Fp8Cast &c, size_t i,
	size_t j)
{
	if (SOURCE == FP8_PLAIN) {
		load(x, c.x, i * c.columns + j);
		return;
	}
	const size_t F = SOURCE == FP8_SWIGLU ? c.columns : c.columns / 2,
		k = j < F ? j : j - F;
	float a[N], b[N];
	load(a, c.ab, 2 * i * F + k);
	load(b, c.ab, (2 * i + 1) * F + k);
	if (SOURCE == FP8_SWIGLU_GRADIENT)
		load(x, c.x, i * F + k);
	#pragma unroll
	for (int n = 0; n < N; n++) {
		float value;
		if (SOURCE == FP8_SWIGLU) {
			value = gated(a[n], b[n]);
		} else {
			const GateGradient g = gate_gradient_of(a[n], b[n], x[n]);
			value = j < F ? g.a : g.b;
		}
		x[n] = rounded_to(c.ab.type, value);
	}
}

// place a thread in a tile, and load its square
/* the first row and column of this thread's square */
struct TilePlace { size_t i, j; };

template <Fp8Source SOURCE>
__device__ inline TilePlace place(const Fp8Cast &c)
{
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const bool pairs = SOURCE == FP8_SWIGLU_GRADIENT
		&& c.columns % (2 * FP8_TILE) == 0;
	const size_t tile = pairs ? blockIdx.x / 2 + blockIdx.x % 2
		* (gridDim.x / 2) : blockIdx.x;
	return { blockIdx.y * (size_t)FP8_TILE + (lane / 4 + warp / 4 * 8) * SQUARE,
		tile * FP8_TILE + (lane % 4 + warp % 4 * 4) * SQUARE };
}

template <bool WIDE, Fp8Source SOURCE>
__device__ inline void load_square(float (&x)[SQUARE][SQUARE], const Fp8Cast &c,
	TilePlace at)
{
	#pragma unroll
	for (int a = 0; a < SQUARE; a++) {
		const size_t i = at.i + a;
		if (WIDE && i < c.rows && at.j < c.columns) {
			load_source<SOURCE>(x[a], c, i, at.j);
			continue;
		}
		#pragma unroll
		for (int b = 0; b < SQUARE; b++) {
			float one[1] = { 0 };
			if (!WIDE && i < c.rows && at.j + b < c.columns)
				load_source<SOURCE>(one, c, i, at.j + b);
			x[a][b] = one[0];
		}
	}
}

// raise a maximum in memory
__device__ inline void raise(void *maxima, size_t at, float x)
{
	if (x > 0)
		atomicMax((int *)maxima + at, __float_as_int(x));
}

__device__ inline float largest_of(const float (&x)[SQUARE][SQUARE])
{
	float most = 0;
	#pragma unroll
	for (int a = 0; a < SQUARE; a++)
		#pragma unroll
		for (int b = 0; b < SQUARE; b++)
			most = fmaxf(most, fp8_magnitude(x[a][b]));
	return most;
}

// find maxima of a tile
__device__ inline void raise_rows(const Fp8Cast &c,
	const float (&x)[SQUARE][SQUARE], TilePlace at)
{
	#pragma unroll
	for (int a = 0; a < SQUARE; a++) {
		float row = 0, column = 0;
		#pragma unroll
		for (int b = 0; b < SQUARE; b++) {
			row = fmaxf(row, fp8_magnitude(x[a][b]));
			column = fmaxf(column, fp8_magnitude(x[b][a]));
		}
		#pragma unroll
		for (int step = 1; step < 4; step *= 2)
			row = fmaxf(row, __shfl_xor_sync(0xffffffff, row, step));
		#pragma unroll
		for (int step = 4; step < 32; step *= 2)
			column = fmaxf(column, __shfl_xor_sync(0xffffffff, column, step));
		if (threadIdx.x % 4 == 0 && at.i + a < c.rows)
			raise(c.maxima.at, at.i + a, row);
		if (threadIdx.x % 32 < 4 && at.j + a < c.columns)
			raise(c.maxima.at, c.rows + at.j + a, column);
	}
}

/* raises the maxima of a matrix; bytes: those of x
 * grid: tiles of a row, rows of tiles; block 256 */
template <bool WIDE, Fp8Source SOURCE>
__global__ __launch_bounds__(CAST_THREADS) void maxima_kernel(Fp8Cast c)
{
	float x[SQUARE][SQUARE];
	const TilePlace at = place<SOURCE>(c);
	load_square<WIDE, SOURCE>(x, c, at);
	if (c.scaling == FP8_ROW) {
		raise_rows(c, x, at);
		return;
	}
	const float most = block_max(largest_of(x));
	if (threadIdx.x == 0)
		raise(c.maxima.at, 0, most);
}

// code numbers in FP8
/* SQUARE codes of x[i] times inverse[i] */
__device__ inline uint2 codes_of(const float (&x)[SQUARE],
	const float (&inverse)[SQUARE], Type type)
{
	union { uint2 word; __nv_fp8x2_storage_t pair[SQUARE / 2]; } to;
	const __nv_fp8_interpretation_t format = type == E4M3 ? __NV_E4M3
		: __NV_E5M2;
	#pragma unroll
	for (int i = 0; i < SQUARE / 2; i++) {
		float2 two;
		two.x = isfinite(x[2 * i]) ? x[2 * i] * inverse[2 * i] : NAN;
		two.y = isfinite(x[2 * i + 1]) ? x[2 * i + 1] * inverse[2 * i + 1] : NAN;
		to.pair[i] = __nv_cvt_float2_to_fp8x2(two, __NV_SATFINITE, format);
	}
	return to.word;
}

// write both copies of a square
template <bool WIDE>
__device__ inline void store_codes(const Fp8Matrix &to, size_t row, size_t k,
	uint2 codes)
{
	uint8_t *out = (uint8_t *)to.codes.at + row * to.k + k;
	if (row >= to.rows || k >= to.k)
		return;
	if (WIDE)
		*(uint2 *)out = codes;
	#pragma unroll
	for (int i = 0; i < SQUARE; i++)
		if (!WIDE && k + i < to.k)
			out[i] = (uint8_t)((i < 4 ? codes.x : codes.y) >> i % 4 * 8);
}

/* rows of a copy from `row` on, at k, and their scales if this thread is the
 * first of its tile in them; x[a][b] is element (row + a, k + b) */
template <bool WIDE>
__device__ inline void write_copy(const Fp8Matrix &to, size_t row, size_t k,
	const float (&x)[SQUARE][SQUARE], const float (&scale)[SQUARE])
{
	#pragma unroll
	for (int a = 0; a < SQUARE; a++) {
		float inverse[SQUARE];
		#pragma unroll
		for (int b = 0; b < SQUARE; b++)
			inverse[b] = 1 / scale[a];
		store_codes<WIDE>(to, row + a, k, codes_of(x[a], inverse,
			to.codes.type));
		if (k % FP8_TILE == 0 && k < to.k && row + a < to.rows)
			((float *)to.scale.at)[fp8_scale_at(&to, row + a, k)] = scale[a];
	}
}

// cast a tile to FP8
template <bool WIDE>
__device__ inline void write_turned(const Fp8Cast &c, TilePlace at,
	const float (&x)[SQUARE][SQUARE], const float (&scale)[SQUARE])
{
	float y[SQUARE][SQUARE];
	#pragma unroll
	for (int a = 0; a < SQUARE; a++)
		#pragma unroll
		for (int b = 0; b < SQUARE; b++)
			y[a][b] = x[b][a];
	write_copy<WIDE>(c.turned, at.j, at.i, y, scale);
}

/* the scales of eight rows of a copy, of which the first is `from` */
__device__ inline void find_scales(float (&scale)[SQUARE], const Fp8Cast &c,
	size_t from, size_t rows, bool turned)
{
	const Type type = turned ? c.turned.codes.type : c.straight.codes.type;
	const float *maxima = (const float *)c.maxima.at;
	#pragma unroll
	for (int a = 0; a < SQUARE; a++) {
		const size_t row = from + a < rows ? from + a : rows - 1;
		scale[a] = fp8_scale(type, maxima[c.scaling == FP8_ROW
			? fp8_group_at(&c, row, row, turned) : 0]);
	}
}

/* both copies of c; bytes: those of x and of the codes
 * grid: tiles of a row, rows of tiles; block 256 */
template <bool WIDE, Fp8Source SOURCE>
__global__ __launch_bounds__(CAST_THREADS) void cast_kernel(Fp8Cast c)
{
	float x[SQUARE][SQUARE], scale[SQUARE];
	const TilePlace at = place<SOURCE>(c);
	const bool block = c.scaling == FP8_BLOCK;
	load_square<WIDE, SOURCE>(x, c, at);
	if (block || c.seen.at) {
		const float most = block_max(largest_of(x));
		const Type type = c.straight.codes.at ? c.straight.codes.type
			: c.turned.codes.type;
		if (c.seen.at && threadIdx.x == 0)
			raise(c.seen.at, 0, most);
		#pragma unroll
		for (int a = 0; a < SQUARE; a++)
			scale[a] = fp8_scale(type, most);
	}
	if (c.straight.codes.at) {
		if (!block)
			find_scales(scale, c, at.i, c.rows, false);
		write_copy<WIDE>(c.straight, at.i, at.j, x, scale);
	}
	if (c.turned.codes.at) {
		if (!block)
			find_scales(scale, c, at.j, c.columns, true);
		write_turned<WIDE>(c, at, x, scale);
	}
}

// launch a cast to FP8
template <bool WIDE, Fp8Source SOURCE>
static void launch_cast(Device *d, const Fp8Cast &c)
{
	const dim3 grid(blocks_for(c.columns, FP8_TILE), blocks_for(c.rows,
		FP8_TILE));
	assert(grid.y <= 65535 && "rows of tiles are counted by the grid's y");
	if (!c.given && c.scaling != FP8_BLOCK) {
		CUDA(cudaMemsetAsync(c.maxima.at, 0, sizeof(float)
			* fp8_groups(c.scaling, c.rows, c.columns), cuda_stream(d)));
		maxima_kernel<WIDE, SOURCE><<<grid, CAST_THREADS, 0, cuda_stream(d)>>>(c);
		LAUNCHED();
	}
	cast_kernel<WIDE, SOURCE><<<grid, CAST_THREADS, 0, cuda_stream(d)>>>(c);
	LAUNCHED();
}

template <Fp8Source SOURCE>
static void launch_by_width(Device *d, const Fp8Cast &c)
{
	const size_t F = SOURCE == FP8_SWIGLU_GRADIENT ? c.columns / 2 : c.columns;
	if (c.rows % SQUARE == 0 && F % SQUARE == 0 && packs(c.x, SQUARE)
		&& packs(c.ab, SQUARE) && aligned(c.straight.codes.at, 16)
		&& aligned(c.turned.codes.at, 16))
		launch_cast<true, SOURCE>(d, c);
	else
		launch_cast<false, SOURCE>(d, c);
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
