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

template <class T, int THREADS>
__device__ inline float largest_of(const Strip<T, THREADS> &x)
{
	float most = 0;
	#pragma unroll
	for (int i = 0; i < x.EACH * UNIT; i++)
		most = fmaxf(most, fabsf(value(x, i / UNIT, i % UNIT)));
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

// code numbers in FP8
__device__ inline float inverse_of(float scale)
{
	return __int_as_float((254 << 23) - __float_as_int(scale));
}

/* the codes of pack k; scale(k, n): that of its number n, a power of two */
template <__nv_fp8_interpretation_t FORMAT, class S, class Scale>
__device__ inline uint32_t codes_of(const S &x, int k, Scale scale)
{
	union { uint32_t word; __nv_fp8x2_storage_t pair[UNIT / 2]; } to;
	float y[UNIT];
	#pragma unroll
	for (int n = 0; n < UNIT; n++) {
		const float from = value(x, k, n);
		y[n] = __fmaf_rn(from, inverse_of(scale(k, n)), __fsub_rd(from, from));
	}
	#pragma unroll
	for (int i = 0; i < UNIT / 2; i++)
		to.pair[i] = __nv_cvt_float2_to_fp8x2(make_float2(y[2 * i],
			y[2 * i + 1]), __NV_SATFINITE, FORMAT);
	return to.word;
}

template <class S, class Scale>
__device__ inline void encode(uint32_t (&codes)[S::EACH], const S &x, Type type,
	Scale scale)
{
	if (type == E4M3)
		#pragma unroll
		for (int k = 0; k < S::EACH; k++)
			codes[k] = codes_of<__NV_E4M3>(x, k, scale);
	else
		#pragma unroll
		for (int k = 0; k < S::EACH; k++)
			codes[k] = codes_of<__NV_E5M2>(x, k, scale);
}

// write a word of codes
/* to elements (row, k) to (row, k + 3), as far as there are such */
template <class T>
__device__ inline void write_codes(const Fp8Matrix &to, size_t row, size_t k,
	uint32_t codes)
{
	uint8_t *out = (uint8_t *)to.codes.at + row * to.k + k;
	if (WHOLE<T>)
		*(uint32_t *)out = codes;
	#pragma unroll
	for (int n = 0; n < UNIT; n++)
		if (!WHOLE<T> && k + n < to.k)
			out[n] = (uint8_t)(codes >> 8 * n);
}

__device__ inline void write_scale(const Fp8Matrix &to, size_t row, size_t k,
	float scale)
{
	const bool each = to.layout == FP8_ROWS || to.layout == FP8_VECTORS;
	if (k % FP8_TILE == 0 && (each || row % FP8_TILE == 0))
		((float *)to.scale.at)[fp8_scale_at(&to, row, k)] = scale;
}

// write the straight copy of a tile
template <bool BY_ROWS, class T, int THREADS, int EACH>
__device__ inline void write_straight(const Fp8Cast &c, Type type, float one,
	const uint32_t (&codes)[EACH], TilePlace at)
{
	#pragma unroll
	for (int k = 0; k < EACH; k++, at.i += THREADS / 32)
		if (at.i < c.rows && at.j < c.columns) {
			write_codes<T>(c.straight, at.i, at.j, codes[k]);
			write_scale(c.straight, at.i, at.j, scale_of<BY_ROWS>(c, type, one,
				at.i));
		}
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
template <bool BY_ROWS, class T, int THREADS, int EACH>
__device__ inline void write_turned(const Fp8Cast &c, Type type, float one,
	const uint32_t (&codes)[EACH], TilePlace at)
{
	__shared__ uint32_t tile[FP8_TILE][32];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	__syncthreads();                    /* an earlier tile has been read */
	#pragma unroll
	for (int k = 0; k < EACH; k++) {
		const int r = warp + k * (THREADS / 32);
		tile[r][(lane + r / UNIT) % 32] = codes[k];
	}
	__syncthreads();
	const size_t i = at.i - warp + lane * UNIT, first = at.j - lane * UNIT;
	#pragma unroll
	for (int q = warp; q < 32; q += THREADS / 32) {
		uint32_t w[UNIT];
		#pragma unroll
		for (int n = 0; n < UNIT; n++)
			w[n] = tile[lane * UNIT + n][(q + lane) % 32];
		transpose_bytes(w);
		#pragma unroll
		for (int n = 0; n < UNIT; n++) {
			const size_t j = first + q * UNIT + n;
			if (i < c.rows && j < c.columns) {
				write_codes<T>(c.turned, j, i, w[n]);
				write_scale(c.turned, j, i, scale_of<BY_ROWS>(c, type, one,
					c.rows + j));
			}
		}
	}
}

// cast a strip to FP8
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
			: *(const float *)c.maxima.at);
	uint32_t codes[x.EACH];
	encode(codes, x, type, [&](int k, int) {
		const size_t i = at.i + k * x.STEP;
		return i < c.rows ? scale_of<BY_ROWS>(c, type, one, i) : one;
	});
	if (c.straight.codes.at)
		write_straight<BY_ROWS, T, THREADS>(c, type, one, codes, at);
	if (c.turned.codes.at == NULL)
		return own;
	if (BY_ROWS)
		encode(codes, x, type, [&](int, int n) {
			return at.j + n < c.columns ? scale_of<BY_ROWS>(c, type, one,
				c.rows + at.j + n) : one;
		});
	write_turned<BY_ROWS, T, THREADS>(c, type, one, codes, at);
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
