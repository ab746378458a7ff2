/* hopper.h: attention by Hopper's TMA and wgmma, and what its host code
 * shares */
#ifndef OPS_CUDA_HOPPER_H
#define OPS_CUDA_HOPPER_H

#include <cuda.h>                       /* types only: CUtensorMap */

#include "ops/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// declare what the host code of attention on Hopper shares
/* is this a Hopper GPU, and the build for it? */
bool        hopper_present(Device *d);
/* can TMA move these heads, of 16-bit elements? */
bool        tma_aligned(Heads x);
/* the tensor map of x, which is (a.B, n, a.H, a.D), with boxes of `rows` rows of
 * a head, as wide as a block of a swizzled tile. Of heads that are shared there
 * are fewer than the map says, and none beyond is asked for */
CUtensorMap tensor_map(Heads x, const Attention *a, size_t n, unsigned rows);
/* are there kernels for this type and D, and can all arrays be moved? g NULL:
 * forward alone; a->B 0: type and D alone */
bool        hopper_supports(Device *d, const Attention *a,
	const AttentionGradient *g);
/* the same of v4, whose backward pass has the mask at the first key alone */
bool        cuda_warp_specialized_supports(Device *d, const Attention *a,
	const AttentionGradient *g);

// declare attention on Hopper
/* v3, tiles by warpgroups (wgmma); require hopper_supports */
void        cuda_wgmma_forward(Device *d, Attention a);
void        cuda_wgmma_backward(Device *d, Attention a, AttentionGradient g);
/* bytes of scratch memory of the backward pass */
size_t      cuda_wgmma_scratch(Device *d, const Attention *a,
	const AttentionGradient *g);

/* v4; the first takes the tile configuration that is estimated to be fastest */
void        cuda_warp_specialized_forward(Device *d, Attention a);
void        cuda_multi_warpgroup_forward(Device *d, Attention a);
void        cuda_m64_forward(Device *d, Attention a);
void        cuda_split_kv_forward(Device *d, Attention a);

/* v4, backward: bytes of its scratch memory, and the pass itself */
size_t      cuda_warp_specialized_scratch(Device *d, const Attention *a,
	const AttentionGradient *g);
void        cuda_warp_specialized_backward(Device *d, Attention a,
	AttentionGradient g);

/* v5, fp32 from split fp16 (hi + lo) */
bool        cuda_split_fp16_supports(Device *d, const Attention *a,
	const AttentionGradient *g);
void        cuda_split_fp16_forward(Device *d, Attention a);
/* bytes of scratch memory of the backward pass or, g NULL, of the forward pass */
size_t      cuda_split_fp16_scratch(Device *d, const Attention *a,
	const AttentionGradient *g);
void        cuda_split_fp16_backward(Device *d, Attention a, AttentionGradient g);

#ifdef __cplusplus
}
#endif

#endif
