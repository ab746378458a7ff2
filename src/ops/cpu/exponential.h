/* exponential.h: e^x in a form that compilers vectorise; relative error below
 * 2^-22 from -87.3 to 88.3, 0 below -87.7, infinity above 88.4, NaN for NaN */
#ifndef OPS_CPU_EXPONENTIAL_H
#define OPS_CPU_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/real.h"

#ifdef REAL_IS_DOUBLE
static inline double exponential(double x)
{
	return exp(x);
}
#else

// define the exponential of a float
/* a macro, so that it is also there as text (source_c.c) */
#define EXPONENTIAL_OF_FLOAT \
static inline float exponential(float x) \
{ \
	const float round = 0x1.8p23f, ln2_high = 0x1.63p-1f; \
	const float ln2_low = -0x1.bd0106p-13f; \
	x = x < -88 ? -88 : x > 89 ? 89 : x;   /* 2^n is 0 or infinity there */ \
	float shifted = x * 0x1.715476p0f + round, n = shifted - round; \
	float r = x - n * ln2_high - n * ln2_low, p = 1 / 5040.f; \
	p = 1 / 720.f + r * p; \
	p = 1 / 120.f + r * p; \
	p = 1 / 24.f + r * p; \
	p = 1 / 6.f + r * p; \
	p = 1 / 2.f + r * p; \
	p = 1 + r * (1 + r * p); \
	uint32_t bits; \
	memcpy(&bits, &shifted, sizeof bits); \
	bits = (bits + 127) << 23;             /* 2^n as a float */ \
	float scale; \
	memcpy(&scale, &bits, sizeof scale); \
	return p * scale; \
}
EXPONENTIAL_OF_FLOAT
#endif

// sum the exponentials of a row
static inline real row_max(const real *z, size_t n)
{
	real most = z[0];
	#pragma omp simd reduction(max:most)
	for (size_t v = 1; v < n; v++)
		most = z[v] > most ? z[v] : most;
	return most;
}

/* what exponentials of a row are taken relative to; most: its maximum */
static inline real finite_base(real most)
{
	return most == -INFINITY ? 0 : most;
}

/* returns the sum of exp(z - *largest) over n logits, 0 if all are -inf;
 * *largest: the largest of them */
static inline double row_exponentials(const real *z, size_t n, real *largest)
{
	real most = row_max(z, n), base = finite_base(most);
	double sum = 0;
	#pragma omp simd reduction(+:sum)
	for (size_t v = 0; v < n; v++)
		sum += exponential(z[v] - base);
	*largest = most;
	return sum;
}

#endif
