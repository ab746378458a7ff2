/* push.h: sums of what copy engines have pushed */
#ifndef DIST_CUDA_PUSH_H
#define DIST_CUDA_PUSH_H

#include <cuda_runtime.h>

#include "ops/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PUSH_MOST_RANKS = 16 };

/* arrays that are added: at[0], ..., at[count - 1] */
typedef struct Sources {
	const void *at[PUSH_MOST_RANKS];
	int count;                       /* > 0 */
} Sources;

/* to[i] = the sum of at[r][i] over the sources, in their order and in fp32;
 * i < n; `to` may be a source. FP32 or BF16. The kernel has at most `blocks` */
void push_sum(Array to, const Sources *from, size_t n, int blocks,
	cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
