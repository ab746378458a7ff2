/* hopper.h: attention by Hopper's own units, and what its host code shares */
#ifndef OPS_CUDA_HOPPER_H
#define OPS_CUDA_HOPPER_H

#include <cuda.h>                       /* types only: CUtensorMap */

#include "ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* is this a Hopper GPU, and the build for it? */
bool        hopper_here(void);
/* can the copy engine move these heads, of numbers of 16 bits? */
bool        hopper_moves(Heads x);
/* of x, which is (a.B, n, a.H, a.D): boxes of `rows` rows of a head, as wide as
 * a block of a swizzled tile */
CUtensorMap hopper_map(Heads x, const Attention *a, size_t n, unsigned rows);
/* are there kernels for this type and D, and can all arrays be moved? g NULL:
 * forward alone; a->B 0: type and D alone */
bool        hopper_takes(const Attention *a, const AttentionGradient *g);
/* tiles by warpgroups, where hopper_takes */
void        cuda_wgmma_forward(Attention a);
void        cuda_wgmma_backward(Attention a, AttentionGradient g);
/* bytes that the backward pass holds */
size_t      cuda_wgmma_scratch(const Attention *a);
/* by the fastest of: wide tiles of queries, narrow ones, split keys */
void        cuda_hopper_forward(Attention a);
void        cuda_wide_forward(Attention a);
void        cuda_narrow_forward(Attention a);
void        cuda_split_forward(Attention a);
/* bytes that the backward pass holds */
size_t      cuda_hopper_backward_scratch(const Attention *a);
void        cuda_hopper_backward(Attention a, AttentionGradient g);
/* fp32 from two planes of fp16 */
bool        cuda_planes_take(const Attention *a, const AttentionGradient *g);
void        cuda_planes_forward(Attention a);
/* bytes that the backward pass holds while it runs */
size_t      cuda_planes_scratch(const Attention *a);
void        cuda_planes_backward(Attention a, AttentionGradient g);

#ifdef __cplusplus
}
#endif

#endif
