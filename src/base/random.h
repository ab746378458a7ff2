/* random.h: counter-based random numbers (Philox 4x32-10, Salmon et al. 2011);
 * value i of a stream depends on nothing else. For the host and for kernels */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <assert.h>
#include <math.h>
#include <stdint.h>

// mark functions for the host and for kernels
#ifdef __CUDACC__
#define ANYWHERE static inline __host__ __device__
#else
#define ANYWHERE static inline
#endif

/* hashes the 128-bit counter (hi, lo) under the key: out[0] .. out[3] */
ANYWHERE void philox(uint32_t out[4], uint64_t key, uint64_t hi, uint64_t lo)
{
	uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32), c2 = (uint32_t)hi,
		c3 = (uint32_t)(hi >> 32);
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53 * c0, p1 = (uint64_t)0xCD9E8D57 * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9;
		k1 += 0xBB67AE85;
	}
	out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

// make bits, uniforms and normals from one Philox block
ANYWHERE uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t i)
{
	uint32_t w[4];
	philox(w, seed, stream, i);
	return (uint64_t)w[1] << 32 | w[0];
}

// map bits to uniforms and normals
/* uniform in the open interval (0, 1), from 64 random bits */
ANYWHERE double random_unit(uint64_t bits)
{
	double u = ((double)(bits >> 11) + 0.5) * 0x1p-53;
	return u < 1 ? u : 1 - 0x1p-53;
}

/* value i of a stream, uniform in the open interval (0, 1) */
ANYWHERE double random_uniform(uint64_t seed, uint64_t stream, uint64_t i)
{
	return random_unit(random_bits(seed, stream, i));
}

/* value i of a stream of normals of mean 0 and variance 1 */
ANYWHERE double random_normal(uint64_t seed, uint64_t stream, uint64_t i)
{
	const double turn = 6.283185307179586;
	uint32_t w[4];
	philox(w, seed, stream, i);
	double u = random_unit((uint64_t)w[1] << 32 | w[0]),
		v = random_unit((uint64_t)w[3] << 32 | w[2]);
	return sqrt(-2 * log(u)) * cos(turn * v);
}

// redraw a normal until it is in bounds
/* a normal under the condition |z| <= bound; bound > 0 */
ANYWHERE double random_truncated(uint64_t seed, uint64_t stream, uint64_t i,
	double bound)
{
	assert(bound > 0 && stream < (uint64_t)1 << 48);
	for (uint64_t attempt = 0;; attempt++) {
		double z = random_normal(seed, stream | attempt << 48, i);
		if (fabs(z) <= bound)
			return z;
	}
}

#endif
