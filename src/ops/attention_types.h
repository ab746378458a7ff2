/* attention_types.h: what attention takes, and its kernels */
#ifndef OPS_ATTENTION_TYPES_H
#define OPS_ATTENTION_TYPES_H

#include "ops/array.h"

/* element (b, t, h, d) is x[b batch + t row + h head + d] */
typedef struct Heads {
	Array x;
	size_t batch, row, head;
} Heads;

/* O = softmax(scale Q K^T) V in each head; causal: query i sees keys 0 ... i or,
 * if the mask is aligned at the end, 0 ... i + seqlen_k - seqlen_q. A score of
 * -inf counts nothing, and a row all of whose scores are -inf has O = 0, L = -inf
 * and no gradient. The elements of q, k and v are finite; else rows of O that
 * share a tile with the others may be NaN */
typedef struct Attention {
	size_t B, H, seqlen_q, seqlen_k, D;
	size_t group;           /* heads of Q, O that share one of K, V; divides H */
	double scale;           /* > 0 */
	bool causal, bottom_right;      /* the second: aligned at the end */
	/* (B, seqlen_q or seqlen_k, H, D), stored alike; K, V have H / group heads */
	Heads q, k, v, o;
	/* B sequences packed one after the other: where each begins, B + 1 rows, the
	 * last total_q or total_k; seqlen_q and seqlen_k are at least the longest.
	 * NULL: all are as long; total_q is 0 */
	const int *starts_q, *starts_k;
	size_t total_q, total_k;
	/* what a kernel saves: L, (B, H, seqlen_q) or, packed, (H, total_q), of
	 * TYPE_REAL, the scores' logsumexp, or P, (B, H, seqlen_q, seqlen_k), and, if
	 * P_cast.at is not NULL, P in the type of q */
	Array L, P, P_cast;
} Attention;


// declare the gradients of attention
typedef struct AttentionGradient {
	Heads d_o;              /* given */
	Heads dq, dk, dv;       /* overwritten; as q, k and v */
	/* (positions, D/2): dq and dk are rotated back by these angles; cosine.at
	 * NULL: not rotated */
	Array cosine, sine;
	/* false: parts of dq may be added by atomics, in any order, which is
	 * faster on some kernels and gives other last bits on every run */
	bool deterministic;
} AttentionGradient;

// declare a version of FlashAttention
/* one version of attention */
typedef struct AttentionKernel {
	const char *name;       /* NULL ends a list of them */
	/* whether the kernel takes these sizes, type, strides and alignment. g
	 * NULL: the forward pass alone; a size of 0: some size of this type and
	 * D */
	bool (*supports)(Device *d, const Attention *a, const AttentionGradient *g);
	void (*forward)(Device *d, Attention a);
	void (*backward)(Device *d, Attention a, AttentionGradient g);
	/* bytes of scratch memory that it takes, in one block; g NULL: forward */
	size_t (*scratch)(Device *d, const Attention *a, const AttentionGradient *g);
	bool saves_P;           /* and no L; attention_forward never takes it */
} AttentionKernel;

#endif
