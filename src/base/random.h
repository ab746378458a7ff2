/* random.h: counter-based random numbers (Philox 4x32-10, Salmon et al. 2011);
 * value i of a stream depends on nothing else */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* counter words lo, lo>>32, hi, hi>>32 */
void     philox(uint32_t out[4], uint64_t key, uint64_t hi, uint64_t lo);
uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t i);
/* in (0, 1) */
double   random_uniform(uint64_t seed, uint64_t stream, uint64_t i);
/* mean 0, variance 1 */
double   random_normal(uint64_t seed, uint64_t stream, uint64_t i);
/* normal given |z| <= bound */
double   random_truncated(uint64_t seed, uint64_t stream, uint64_t i,
	double bound);

#endif
