/* attention_case.h: attention on random inputs of one shape, and its check */
#ifndef CASES_ATTENTION_CASE_H
#define CASES_ATTENTION_CASE_H

#include "ops/ops.h"

typedef struct AttentionCase {
	Device *device;
	const Ops *ops;
	size_t B, H, n, D;
	bool causal;
	Type type;
	/* (B, n, H, D) each; dq, dk and dv are NULL until gradients are asked for */
	Array q, k, v, o, dO, dq, dk, dv;
	Array P;                         /* (B, H, n, n), naive */
	Array L;                         /* (B, H, n), FlashAttention */
	const AttentionKernel *kernel;
	bool deterministic;              /* AttentionGradient's */
} AttentionCase;

/* allocates and draws queries, keys and values, and allocates the output; the
 * variant is the first kernel, naive */
AttentionCase attention_case(Device *device, size_t B, size_t H, size_t n,
	size_t D, bool causal, Type type, uint64_t seed);
void attention_case_free(AttentionCase *a);
/* draws dO, and allocates dq, dk and dv */
void attention_case_gradients(AttentionCase *a, uint64_t seed);

/* names of variants. naive: two matmuls and a softmax by elementary steps,
 * causal only; -atomic at the end: dQ by atomics; the others are kernels of the
 * device */
#define ATTENTION_VARIANTS_OF(FIRST, NEXT) \
	FIRST(VARIANT_TILED, "tiled") NEXT(VARIANT_SIMT, "simt") \
	NEXT(VARIANT_MMA_SYNC, "mma_sync") \
	NEXT(VARIANT_SPLIT_FP16, "split_fp16") NEXT(VARIANT_WGMMA, "wgmma") \
	NEXT(VARIANT_M64, "m64") \
	NEXT(VARIANT_MULTI_WARPGROUP, "multi_warpgroup") \
	NEXT(VARIANT_SPLIT_KV, "split_kv") \
	NEXT(VARIANT_WARP_SPECIALIZED, "warp_specialized") \
	NEXT(VARIANT_WARP_SPECIALIZED_ATOMIC, "warp_specialized-atomic") \
	NEXT(VARIANT_NAIVE, "naive")
#define ATTENTION_VARIANTS CHOICES(ATTENTION_VARIANTS_OF)
enum { CHOICE_IDS(ATTENTION_VARIANTS_OF) NATTENTION_VARIANTS };
extern const char *const attention_variants[NATTENTION_VARIANTS];
/* chooses the variant of the passes below; "chosen": the one that the engine
 * takes. False: it does not support this case */
bool attention_case_take(AttentionCase *a, const char *variant);
/* the passes; each is a Work of an AttentionCase */
void attention_case_forward(void *attention_case);
void attention_case_backward(void *attention_case);

/* ends the program unless some rows of o are what their formulas say; gradients:
 * rows of dq too and, with the mask, the last of dk and dv. Allowed are
 * `tolerance` times the largest of the row's elements, of 0.05 and, for dq, of
 * the terms summed. Returns the largest error, as a fraction of the same */
double attention_case_check(const AttentionCase *a, bool gradients,
	double tolerance);
#endif
