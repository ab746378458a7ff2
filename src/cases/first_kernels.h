/* first_kernels.h: sums over rows in versions, and loads from each level of
 * memory */
#ifndef CASES_FIRST_KERNELS_H
#define CASES_FIRST_KERNELS_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the versions; all but loop are kernels of a GPU */
#define SUM_VERSIONS_OF(FIRST, NEXT) \
	FIRST(SUM_LOOP, "loop") NEXT(SUM_THREAD, "thread") \
	NEXT(SUM_BLOCK, "block") NEXT(SUM_WARP, "warp") NEXT(SUM_ASYNC, "async")
#define SUM_VERSIONS CHOICES(SUM_VERSIONS_OF)
typedef enum { CHOICE_IDS(SUM_VERSIONS_OF) NSUMS } SumVersion;
/* sums (rows) of the rows of x (rows, C), fp32; C is a multiple of 4 */
typedef struct SumCase {
	float *sums;
	const float *x;
	size_t rows, C;
} SumCase;
void cuda_sum_rows_by(Device *d, SumVersion version, const SumCase *s);

// declare the levels of memory
/* where loads find their data; LEVEL_SHARED is a memory of GPUs alone */
#define LEVELS_OF(FIRST, NEXT) \
	FIRST(LEVEL_SHARED, "shared") NEXT(LEVEL_L1, "L1") NEXT(LEVEL_L2, "L2") \
	NEXT(LEVEL_MEMORY, "memory")
#define LEVELS CHOICES(LEVELS_OF)
typedef enum { CHOICE_IDS(LEVELS_OF) NLEVELS } MemoryLevel;
/* elements of a line of 128 bytes, one of which is in the chain */
enum { LINE = 32 };
typedef struct Chase {
	long long clocks, ns;            /* of `steps` loads; clocks 0: not known */
	uint32_t at;                     /* the element that was reached */
} Chase;
/* follows the chain next (n) from chase->at for `warmup` loads, and then for
 * `steps`, which are timed; chase is in the device's memory */
void cuda_chase(Device *d, MemoryLevel level, Chase *chase, const uint32_t *next,
	size_t n, size_t warmup, size_t steps);
enum { LEVEL_THREADS = 1024 };
/* each block reads its row of x (blocks, n) `passes` times; n is a multiple of
 * 4 LEVEL_THREADS. sums (blocks, LEVEL_THREADS): what a thread has read, added */
void cuda_read_level(Device *d, MemoryLevel level, float *sums, const float *x,
	size_t n, int passes);
unsigned cuda_level_blocks(const Device *d);

#ifdef __cplusplus
}
#endif

#endif
