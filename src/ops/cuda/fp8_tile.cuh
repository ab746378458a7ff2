/* fp8_tile.cuh: a tile of a matrix, by strips in registers, to both its copies
 * in FP8 */
#ifndef OPS_CUDA_FP8_TILE_CUH
#define OPS_CUDA_FP8_TILE_CUH

#include <cuda_fp8.h>

#include "ops/cuda/common.cuh"
#include "ops/fp8.h"

enum { UNIT = FP8_UNIT };
static_assert(32 * UNIT == FP8_TILE && UNIT == 4, "a warp takes a row of a tile");

// give a thread its strip of a tile
/* UNIT columns of every STEP-th row, in a block of so many threads */
template <class T, int THREADS> struct Strip {
	static constexpr int STEP = THREADS / 32, EACH = FP8_TILE / STEP;
	uint32_t word[EACH][UNIT * sizeof(T) / 4];
};
/* is a pack loaded and stored as one? */
template <class T> constexpr bool WHOLE = sizeof(T) == 2;
/* the first row and column of a thread's strip */
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
	return { blockIdx.y * (size_t)FP8_TILE + threadIdx.x / 32,
		blockIdx.x * (size_t)FP8_TILE + threadIdx.x % 32 * UNIT };
}

/* how many of n rows or columns there are from i on, if less than a tile has */
__device__ inline int remaining(size_t n, size_t i)
{
	return i < n ? (int)min(n - i, (size_t)FP8_TILE) : 0;
}

// take an element of a strip
__device__ inline uint32_t packed(float low, float high)
{
	union { __nv_bfloat162 pair; uint32_t word; } to;
	to.pair = __floats2bfloat162_rn(low, high);
	return to.word;
}

template <class T, int THREADS>
__device__ inline float value(const Strip<T, THREADS> &x, int k, int n)
{
	const uint32_t word = x.word[k][n * sizeof(T) / 4];
	return __uint_as_float(!WHOLE<T> ? word : n % 2 ? word & 0xffff0000
		: word << 16);
}

// find the largest magnitude of a strip
__device__ inline void raise(void *maxima, size_t at, float x)
{
	if (x > 0)
		atomicMax((int *)maxima + at, __float_as_int(x));
}

/* of what is not NaN */
template <class T, int THREADS>
__device__ inline float largest_or_infinite(const Strip<T, THREADS> &x)
{
	float most = 0;
	__nv_bfloat162 pair = __float2bfloat162_rn(0);
	#pragma unroll
	for (int k = 0; k < x.EACH; k++)
		#pragma unroll
		for (int n = 0; n < UNIT; n += 2) {
			if (WHOLE<T>)
				pair = __hmax2(pair, __habs2(*(const __nv_bfloat162 *)&x.word[k][n
					/ 2]));
			else
				most = fmaxf(fmaxf(most, fabsf(value(x, k, n))),
					fabsf(value(x, k, n + 1)));
		}
	return WHOLE<T> ? fmaxf(__low2float(pair), __high2float(pair)) : most;
}

template <class T, int THREADS>
__device__ inline float largest_of(const Strip<T, THREADS> &x)
{
	float most = largest_or_infinite(x);
	if (most <= FLT_MAX)
		return most;
	most = 0;
	#pragma unroll
	for (int i = 0; i < x.EACH * UNIT; i++)
		most = fmaxf(most, fp8_magnitude(value(x, i / UNIT, i % UNIT)));
	return most;
}

// find the scale of a row or a column
/* `one` unless by rows; which: a row, or c.rows and a column */
template <bool BY_ROWS>
__device__ inline float scale_of(const Fp8Cast &c, Type type, float one,
	size_t which)
{
	return BY_ROWS ? fp8_scale(type, ((const float *)c.maxima.at)[which]) : one;
}

/* the scales of a copy in the tile that begins at (row, k) of it; before: c.rows
 * if the copy is turned */
template <bool BY_ROWS>
__device__ inline void write_scales(const Fp8Cast &c, const Fp8Matrix &to,
	Type type, float one, size_t row, size_t k, size_t before)
{
	const bool each = to.layout == FP8_ROWS || to.layout == FP8_VECTORS;
	row += threadIdx.x;
	if (threadIdx.x < (each ? FP8_TILE : 1) && row < to.rows)
		((float *)to.scale.at)[fp8_scale_at(&to, row, k)] = scale_of<BY_ROWS>(c,
			type, one, before + row);
}

// code numbers in FP8
__device__ inline float inverse_of(float scale)
{
	return __int_as_float((254 << 23) - __float_as_int(scale));
}

/* the codes of pack k; inverse(k, n): what its number n is multiplied by */
template <__nv_fp8_interpretation_t FORMAT, class S, class Inverse>
__device__ inline uint32_t codes_of(const S &x, int k, Inverse inverse)
{
	union { uint32_t word; __nv_fp8x2_storage_t pair[UNIT / 2]; } to;
	float y[UNIT];
	#pragma unroll
	for (int n = 0; n < UNIT; n++) {
		const float from = value(x, k, n);
		y[n] = __fmaf_rn(from, inverse(k, n), __fsub_rd(from, from));
	}
	#pragma unroll
	for (int i = 0; i < UNIT / 2; i++)
		to.pair[i] = __nv_cvt_float2_to_fp8x2(make_float2(y[2 * i],
			y[2 * i + 1]), __NV_SATFINITE, FORMAT);
	return to.word;
}

template <class S, class Inverse>
__device__ inline void encode(uint32_t (&codes)[S::EACH], const S &x, Type type,
	Inverse inverse)
{
	if (type == E4M3)
		#pragma unroll
		for (int k = 0; k < S::EACH; k++)
			codes[k] = codes_of<__NV_E4M3>(x, k, inverse);
	else
		#pragma unroll
		for (int k = 0; k < S::EACH; k++)
			codes[k] = codes_of<__NV_E5M2>(x, k, inverse);
}

// write a word of codes
/* the first `left` of four codes, if they are not whole anyway */
template <class T>
__device__ inline void write_codes(uint8_t *to, uint32_t codes, int left)
{
	if (WHOLE<T>)
		*(uint32_t *)to = codes;
	#pragma unroll
	for (int n = 0; n < UNIT; n++)
		if (!WHOLE<T> && n < left)
			to[n] = (uint8_t)(codes >> 8 * n);
}

// write the straight copy of a tile
template <class T, int THREADS, int EACH>
__device__ inline void write_straight(const Fp8Cast &c,
	const uint32_t (&codes)[EACH], TilePlace at)
{
	constexpr int STEP = THREADS / 32;
	const int left = remaining(c.columns, at.j),
		rows = left ? remaining(c.rows, at.i) : 0;
	uint8_t *to = (uint8_t *)c.straight.codes.at + at.i * c.columns + at.j;
	#pragma unroll
	for (int k = 0; k < EACH; k++, to += STEP * c.columns)
		if (k * STEP < rows)
			write_codes<T>(to, codes[k], left);
}

// write the transposed copy of a tile
/* w[i] becomes the bytes i of all four */
__device__ inline void transpose_bytes(uint32_t (&w)[UNIT])
{
	const uint32_t low[] = { __byte_perm(w[0], w[1], 0x5140),
		__byte_perm(w[2], w[3], 0x5140) }, high[] = { __byte_perm(w[0], w[1],
		0x7362), __byte_perm(w[2], w[3], 0x7362) };
	w[0] = __byte_perm(low[0], low[1], 0x5410);
	w[1] = __byte_perm(low[0], low[1], 0x7632);
	w[2] = __byte_perm(high[0], high[1], 0x5410);
	w[3] = __byte_perm(high[0], high[1], 0x7632);
}

/* every thread of the block calls it */
template <class T, int THREADS, int EACH>
__device__ inline void write_turned(const Fp8Cast &c,
	const uint32_t (&codes)[EACH], TilePlace at)
{
	constexpr int STEP = THREADS / 32;
	__shared__ uint32_t tile[FP8_TILE][32];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	__syncthreads();                    /* an earlier tile has been read */
	#pragma unroll
	for (int k = 0; k < EACH; k++) {
		const int r = warp + k * STEP;
		tile[r][(lane + r / UNIT) % 32] = codes[k];
	}
	__syncthreads();
	const size_t i = at.i - warp + lane * UNIT,
		j = at.j - lane * UNIT + warp * UNIT;
	const int left = remaining(c.rows, i),
		rows = left ? remaining(c.columns, j) : 0;
	uint8_t *to = (uint8_t *)c.turned.codes.at + j * c.rows + i;
	#pragma unroll
	for (int q = 0; q < FP8_TILE; q += STEP * UNIT, to += STEP * UNIT * c.rows) {
		uint32_t w[UNIT];
		#pragma unroll
		for (int n = 0; n < UNIT; n++)
			w[n] = tile[lane * UNIT + n][(warp + q / UNIT + lane) % 32];
		transpose_bytes(w);
		#pragma unroll
		for (int n = 0; n < UNIT; n++)
			if (q + n < rows)
				write_codes<T>(to + n * c.rows, w[n], left);
	}
}

// code a strip by rows or by columns
template <class S>
__device__ inline void encode_by_rows(uint32_t (&codes)[S::EACH],
	const Fp8Cast &c, const S &x, Type type, TilePlace at)
{
	float inverse[S::EACH];
	#pragma unroll
	for (int k = 0; k < S::EACH; k++)
		inverse[k] = inverse_of(scale_of<true>(c, type, 1, min(at.i + k * S::STEP,
			c.rows - 1)));
	encode(codes, x, type, [&](int k, int) { return inverse[k]; });
}

template <class S>
__device__ inline void encode_by_columns(uint32_t (&codes)[S::EACH],
	const Fp8Cast &c, const S &x, Type type, TilePlace at)
{
	float inverse[UNIT];
	#pragma unroll
	for (int n = 0; n < UNIT; n++)
		inverse[n] = inverse_of(scale_of<true>(c, type, 1, c.rows + min(at.j + n,
			c.columns - 1)));
	encode(codes, x, type, [&](int, int n) { return inverse[n]; });
}

/* returns the largest magnitude of the strip, if anyone wants to know. Every
 * thread of the block calls it */
template <bool BY_ROWS, class T, int THREADS>
__device__ inline float cast_strip(const Fp8Cast &c,
	const Strip<T, THREADS> &x, TilePlace at)
{
	const Type type = c.straight.codes.at ? c.straight.codes.type
		: c.turned.codes.type;
	const bool block = c.scaling == FP8_BLOCK;
	const float own = block || c.seen.at ? largest_of(x) : 0,
		one = BY_ROWS ? 1 : fp8_scale(type, block ? block_max(own)
			: *(const float *)c.maxima.at), inverse = inverse_of(one);
	const size_t i = at.i - threadIdx.x / 32, j = at.j - threadIdx.x % 32 * UNIT;
	uint32_t codes[x.EACH];
	if (BY_ROWS)
		encode_by_rows(codes, c, x, type, at);
	else
		encode(codes, x, type, [=](int, int) { return inverse; });
	if (c.straight.codes.at) {
		write_straight<T, THREADS>(c, codes, at);
		write_scales<BY_ROWS>(c, c.straight, type, one, i, j, 0);
	}
	if (c.turned.codes.at) {
		if (BY_ROWS)
			encode_by_columns(codes, c, x, type, at);
		write_turned<T, THREADS>(c, codes, at);
		write_scales<BY_ROWS>(c, c.turned, type, one, j, i, c.rows);
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
