/* fp8.h: how many scales and maxima there are, and which one is an element's */
#ifndef OPS_FP8_H
#define OPS_FP8_H

#include <float.h>
#include <math.h>

#include "ops/fp8_types.h"

// mark functions for the host and for kernels
#ifdef __CUDACC__
#define ANYWHERE static inline __host__ __device__
#else
#define ANYWHERE static inline
#endif

// count and find scales
ANYWHERE size_t fp8_tiles(size_t n)
{
	return (n + FP8_TILE - 1) / FP8_TILE;
}

/* the place of the scale of element (row, k) */
ANYWHERE size_t fp8_scale_at(const Fp8Matrix *m, size_t row, size_t k)
{
	switch (m->layout) {
	case FP8_ROWS:    return row;
	case FP8_BLOCKS:  return row / FP8_TILE * ((fp8_tiles(m->k) + 3) / 4 * 4)
		+ k / FP8_TILE;
	case FP8_VECTORS: return k / FP8_TILE * m->rows + row;
	default:          return 0;
	}
}

ANYWHERE size_t fp8_scales(Fp8Layout layout, size_t rows, size_t k)
{
	switch (layout) {
	case FP8_ROWS:    return rows;
	case FP8_BLOCKS:  return fp8_tiles(rows) * ((fp8_tiles(k) + 3) / 4 * 4);
	case FP8_VECTORS: return fp8_tiles(k) * rows;
	default:          return 1;
	}
}

// count and find maxima
ANYWHERE size_t fp8_groups(Fp8Scaling scaling, size_t rows, size_t columns)
{
	return scaling == FP8_ROW ? rows + columns
		: scaling == FP8_BLOCK ? fp8_tiles(rows) * fp8_tiles(columns) : 1;
}

/* the place of the maximum for element (i, j) of c.x, in its copy that is turned
 * or not */
ANYWHERE size_t fp8_group_at(const Fp8Cast *c, size_t i, size_t j, bool turned)
{
	return c->scaling == FP8_ROW ? (turned ? c->rows + j : i)
		: c->scaling == FP8_BLOCK
		? i / FP8_TILE * fp8_tiles(c->columns) + j / FP8_TILE : 0;
}

// make a scale of a maximum
ANYWHERE float fp8_scale(Type type, float maximum)
{
	union { float number; int32_t bits; } x = { maximum };
	if (!(maximum > 0 && maximum <= FLT_MAX))
		return 1;
	int exponent = (x.bits >> 23) + ((x.bits & 0x7fffff) > 0x600000)
		- (type == E4M3 ? 8 : 15);
	x.bits = (exponent < 1 ? 1 : exponent) << 23;
	return x.number;
}

/* what a maximum is taken of: |x|, or 0 where x is not finite */
ANYWHERE float fp8_magnitude(float x)
{
	float a = fabsf(x);
	return a <= FLT_MAX ? a : 0;
}
#endif
