/* fp8_tile.cuh: a tile of a matrix, by squares in registers, to both its copies
 * in FP8 */
#ifndef OPS_CUDA_FP8_TILE_CUH
#define OPS_CUDA_FP8_TILE_CUH

#include <cuda_fp8.h>

#include "ops/cuda/common.cuh"
#include "ops/fp8.h"

enum { SQUARE = FP8_UNIT, CAST_THREADS = 256 };
static_assert(CAST_THREADS * SQUARE * SQUARE == FP8_TILE * FP8_TILE,
	"threads cover a tile");

// place a thread in a tile
template <class T> struct Square {
	uint32_t word[SQUARE][SQUARE * sizeof(T) / 4];
};
/* is a row of a square loaded and stored as one pack? */
template <class T> constexpr bool WHOLE = sizeof(T) == 2;
/* blocks that share an SM: one stores while another loads. By rows the two
 * copies need too many registers */
template <class T, bool ROWS = false>
constexpr int RESIDENT = WHOLE<T> && !ROWS ? 2 : 1;
/* the first row and column of a thread's square */
struct TilePlace { size_t i, j; };

/* a grid with a block for each tile of so many columns */
static inline dim3 tiles_of(const Fp8Cast &c, size_t columns)
{
	const dim3 grid(blocks_for(columns, FP8_TILE), blocks_for(c.rows, FP8_TILE));
	assert(grid.y <= 65535 && "rows of tiles are counted by the grid's y");
	return grid;
}

__device__ inline TilePlace place()
{
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	return { blockIdx.y * (size_t)FP8_TILE + (lane / 4 + warp / 4 * 8) * SQUARE,
		blockIdx.x * (size_t)FP8_TILE + (lane % 4 + warp % 4 * 4) * SQUARE };
}

// take an element of a square
__device__ inline uint32_t packed(float low, float high)
{
	union { __nv_bfloat162 pair; uint32_t word; } to;
	to.pair = __floats2bfloat162_rn(low, high);
	return to.word;
}

template <class T>
__device__ inline float value(const Square<T> &x, int a, int b)
{
	const uint32_t word = x.word[a][b * sizeof(T) / 4];
	return __uint_as_float(!WHOLE<T> ? word : b % 2 ? word & 0xffff0000
		: word << 16);
}

template <class T> __device__ inline void keep_packed(Square<T> &x)
{
	#pragma unroll
	for (int i = 0; i < (int)sizeof x / 4; i++)
		asm volatile("" : "+r"(x.word[i / (int)(SQUARE * sizeof(T) / 4)]
			[i % (int)(SQUARE * sizeof(T) / 4)]));
}

// find the largest magnitude of a square
__device__ inline void raise(void *maxima, size_t at, float x)
{
	if (x > 0)
		atomicMax((int *)maxima + at, __float_as_int(x));
}

template <class T>
__device__ inline float largest_of(const Square<T> &x)
{
	float most = 0;
	#pragma unroll
	for (int i = 0; i < SQUARE * SQUARE; i++)
		most = fmaxf(most, fabsf(value(x, i / SQUARE, i % SQUARE)));
	if (most <= FLT_MAX)
		return most;
	most = 0;
	#pragma unroll
	for (int i = 0; i < SQUARE * SQUARE; i++)
		most = fmaxf(most, fp8_magnitude(value(x, i / SQUARE, i % SQUARE)));
	return most;
}

// code numbers in FP8
__device__ inline float inverse_of(float scale)
{
	return __int_as_float((254 << 23) - __float_as_int(scale));
}

/* the codes of row a times inverse, a power of two; of column a of a square that
 * is turned */
template <__nv_fp8_interpretation_t FORMAT, class T>
__device__ inline uint2 codes_of(const Square<T> &x, int a, float inverse,
	bool turned)
{
	union { uint2 word; __nv_fp8x2_storage_t pair[SQUARE / 2]; } to;
	float y[SQUARE];
	#pragma unroll
	for (int b = 0; b < SQUARE; b++) {
		const float from = turned ? value(x, b, a) : value(x, a, b);
		y[b] = __fmaf_rn(from, inverse, __fsub_rd(from, from));
	}
	#pragma unroll
	for (int i = 0; i < SQUARE / 2; i++)
		to.pair[i] = __nv_cvt_float2_to_fp8x2(make_float2(y[2 * i],
			y[2 * i + 1]), __NV_SATFINITE, FORMAT);
	return to.word;
}

/* the codes of a square, by a scale for each row of them or by one for all */
template <class T, int SCALES>
__device__ inline void encode(uint2 (&codes)[SQUARE], const Square<T> &x,
	const float (&scale)[SCALES], Type type, bool turned)
{
	if (type == E4M3)
		#pragma unroll
		for (int a = 0; a < SQUARE; a++)
			codes[a] = codes_of<__NV_E4M3>(x, a, inverse_of(scale[a % SCALES]),
				turned);
	else
		#pragma unroll
		for (int a = 0; a < SQUARE; a++)
			codes[a] = codes_of<__NV_E5M2>(x, a, inverse_of(scale[a % SCALES]),
				turned);
}

// transpose the codes of a square
/* w[i] becomes the bytes i of all four */
__device__ inline void transpose_bytes(uint32_t (&w)[4])
{
	const uint32_t low[] = { __byte_perm(w[0], w[1], 0x5140),
		__byte_perm(w[2], w[3], 0x5140) }, high[] = { __byte_perm(w[0], w[1],
		0x7362), __byte_perm(w[2], w[3], 0x7362) };
	w[0] = __byte_perm(low[0], low[1], 0x5410);
	w[1] = __byte_perm(low[0], low[1], 0x7632);
	w[2] = __byte_perm(high[0], high[1], 0x5410);
	w[3] = __byte_perm(high[0], high[1], 0x7632);
}

__device__ inline void transpose_codes(uint2 (&codes)[SQUARE])
{
	uint32_t part[4][4];                /* upper left, right, lower left, right */
	#pragma unroll
	for (int i = 0; i < SQUARE; i++) {
		part[i / 4 * 2][i % 4] = codes[i].x;
		part[i / 4 * 2 + 1][i % 4] = codes[i].y;
	}
	#pragma unroll
	for (int k = 0; k < 4; k++)
		transpose_bytes(part[k]);
	#pragma unroll
	for (int i = 0; i < SQUARE; i++)
		codes[i] = { part[i / 4][i % 4], part[i / 4 + 2][i % 4] };
}

// write a copy of a square
/* a square of a copy, from `row` and k on, and the scales of its rows if it is
 * the first of its tile in them */
template <class T, int SCALES>
__device__ inline void write_square(const Fp8Matrix &to, size_t row, size_t k,
	const uint2 (&codes)[SQUARE], const float (&scale)[SCALES])
{
	uint8_t *out = (uint8_t *)to.codes.at + row * to.k + k;
	if (row >= to.rows || k >= to.k)
		return;
	#pragma unroll
	for (int a = 0; a < SQUARE; a++, out += to.k) {
		if (WHOLE<T>)
			*(uint2 *)out = codes[a];
		#pragma unroll
		for (int i = 0; i < SQUARE; i++)
			if (!WHOLE<T> && row + a < to.rows && k + i < to.k)
				out[i] = (uint8_t)((i < 4 ? codes[a].x : codes[a].y)
					>> i % 4 * 8);
	}
	if (k % FP8_TILE)
		return;
	float *first = (float *)to.scale.at + fp8_scale_at(&to, row, k);
	const bool each = to.layout == FP8_ROWS || to.layout == FP8_VECTORS;
	#pragma unroll
	for (int a = 0; a < SQUARE; a++)
		if (WHOLE<T> || row + a < to.rows)
			first[each ? a : 0] = scale[a % SCALES];
}

// cast a square to FP8
template <class T>
__device__ inline void cast_by_rows(const Fp8Cast &c, const Square<T> &x,
	TilePlace at, Type type, bool turned)
{
	const Fp8Matrix &to = turned ? c.turned : c.straight;
	const size_t row = turned ? at.j : at.i;
	const float *maxima = (const float *)c.maxima.at + (turned ? c.rows : 0);
	float scale[SQUARE];
	uint2 codes[SQUARE];
	if (to.codes.at == NULL)
		return;
	#pragma unroll
	for (int a = 0; a < SQUARE; a++)
		scale[a] = fp8_scale(type, row + a < to.rows ? maxima[row + a] : 0);
	encode(codes, x, scale, type, turned);
	write_square<T>(to, row, turned ? at.i : at.j, codes, scale);
}

// cast a square with one scale
template <class T>
__device__ inline void cast_by_one(const Fp8Cast &c, const Square<T> &x,
	TilePlace at, float maximum, Type type)
{
	const float scale[] = { fp8_scale(type, maximum) };
	uint2 codes[SQUARE];
	encode(codes, x, scale, type, false);
	if (c.straight.codes.at)
		write_square<T>(c.straight, at.i, at.j, codes, scale);
	transpose_codes(codes);
	if (c.turned.codes.at)
		write_square<T>(c.turned, at.j, at.i, codes, scale);
}

// cast a thread's square
/* returns the largest magnitude of the square, if anyone wants to know. Every
 * thread of the block calls it */
template <bool ROWS, class T>
__device__ inline float cast_square(const Fp8Cast &c, Square<T> &x,
	TilePlace at)
{
	const Type type = c.straight.codes.at ? c.straight.codes.type
		: c.turned.codes.type;
	const bool block = c.scaling == FP8_BLOCK;
	keep_packed(x);
	const float own = block || c.seen.at ? largest_of(x) : 0;
	keep_packed(x);
	if (ROWS) {
		cast_by_rows(c, x, at, type, false);
		keep_packed(x);
		cast_by_rows(c, x, at, type, true);
	} else {
		cast_by_one(c, x, at, block ? block_max(own)
			: *(const float *)c.maxima.at, type);
	}
	return own;
}

/* own: the largest magnitude that a thread has seen. Every thread calls it */
__device__ inline void note_seen(const Fp8Cast &c, float own)
{
	if (c.seen.at == NULL)
		return;
	own = block_max(own);
	if (threadIdx.x == 0)
		raise(c.seen.at, 0, own);
}
#endif
