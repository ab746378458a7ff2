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
bool        cuda_hopper_take(const Attention *a, const AttentionGradient *g);
/* by the faster of: wide tiles of queries, narrow ones */
void        cuda_hopper_forward(Attention a);
void        cuda_wide_forward(Attention a);
void        cuda_narrow_forward(Attention a);
/* of numbers of this type, heads of D: is there a backward pass for Hopper? */
bool        hopper_backward_made(Type type, size_t D);
/* bytes that it allocates while it runs */
size_t      cuda_hopper_backward_scratch(const Attention *a);
void        cuda_hopper_backward(Attention a, AttentionGradient g);

#ifdef __cplusplus
}
#endif

#endif
