/* attention_case.h: attention on random inputs of one shape, and its check */
#ifndef EXPERIMENTS_ATTENTION_CASE_H
#define EXPERIMENTS_ATTENTION_CASE_H

#include "ops/ops.h"

typedef struct AttentionCase {
	Device *device;
	const Ops *ops;
	size_t B, H, n, D;
	bool causal;
	Type type;
	/* (B, n, H, D); dq, dk and dv are at NULL until there are gradients */
	Array q, k, v, o, dO, dq, dk, dv;
	Array P, dP;                     /* (B, H, n, n), naive */
	Array L;                         /* (B, H, n), FlashAttention */
	const AttentionKernel *kernel;         /* NULL: naive */
	bool deterministic;              /* AttentionGradient's */
} AttentionCase;

/* makes queries, keys, values and room for the output */
AttentionCase attention_case(Device *device, size_t B, size_t H, size_t n,
	size_t D, bool causal, Type type, uint64_t seed);
void attention_case_free(AttentionCase *a);
/* makes dO and room for dq, dk, dv */
void attention_case_gradients(AttentionCase *a, uint64_t seed);

/* naive: two matmuls and a softmax by elementary steps, causal only; else the
 * name of one of the device's kernels, or chosen: the one that the engine takes;
 * -atomic: dQ by atomics. From now on the case is computed so, unless false is
 * returned: it cannot */
#define ATTENTION_VARIANTS "tiled|simt|mma_sync|split_fp16|wgmma|m64|" \
	"multi_warpgroup|split_kv|warp_specialized|"                         \
	"warp_specialized-atomic|naive"
enum { NVARIANTS = 11 };
extern const char *const attention_variants[NVARIANTS];
bool attention_case_take(AttentionCase *a, const char *variant);
void attention_case_forward(void *attention_case);
void attention_case_backward(void *attention_case);

/* ends the program unless some rows of o, and after a backward pass of dq and,
 * with the mask, the last of dk and dv, are what their formulas say, to
 * `tolerance` of the largest, of 0.05, or for dq of the terms summed. Returns
 * how far they are off, as a fraction of the same */
double attention_case_check(const AttentionCase *a, bool gradients,
	double tolerance);

#endif
