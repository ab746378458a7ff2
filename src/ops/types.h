/* types.h: what operations work on */
#ifndef OPS_TYPES_H
#define OPS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/number.h"
#include "device/device.h"

#ifdef REAL_IS_DOUBLE
#define TYPE_REAL FP64
#else
#define TYPE_REAL FP32
#endif

typedef struct Array {
	void *at;      /* in the device's memory; on the CPU: real[] */
	Type type;     /* the format to which the values are rounded */
} Array;
struct Elementary;     /* ops/elementary.h */

// declare the shape of a matmul
/* C = alpha op(A) op(B) + beta C for outer * inner matrices each; op transposes
 * or does nothing. op(A): m x k, op(B): k x n, C: m x n. With beta = 0 C is not
 * read, so it may hold NaN */
typedef struct Matmul {
	size_t m, n, k;
	bool trans_a, trans_b;
	/* elements from the start of a row to that of the next, as the matrix is
	 * stored */
	size_t lda, ldb, ldc;
	double alpha, beta;
	size_t outer, inner;            /* counts of matrices; 0 means 1 */
	/* elements to the next outer matrix [0] and to the next inner one [1] */
	size_t step_a[2], step_b[2], step_c[2];
} Matmul;

// declare the arguments of an optimizer
/* what one step of AdamW needs. It lies in the device's memory, so that a
 * captured step can be launched again with other values */
typedef struct AdamWStep {
	/* keep: 1 - lr decay; rate: lr sqrt(1 - beta2^t) / (1 - beta1^t), at step
	 * t */
	real keep, rate;
	real beta1, beta2, one_minus_beta1, one_minus_beta2, eps;
	real unscale;                   /* gradients are multiplied by it */
} AdamWStep;
/* the same for SGD; momentum is read only where there is a velocity */
typedef struct SgdStep {
	real rate, momentum, unscale;
} SgdStep;

// declare the gradients that an update sums
enum { MOST_GRADIENTS = 8 };
/* gradients of one array, which the operation that takes them sums in this
 * order, in fp32 or wider */
typedef struct Gradients {
	int n;                          /* at least 1 */
	Array at[MOST_GRADIENTS];       /* of one type */
} Gradients;

static inline Gradients one_gradient(Array g)
{
	Gradients one = { 1, { g } };
	return one;
}

// declare FlashAttention
/* element (b, t, h, d) is x[b batch + t row + h head + d] */
typedef struct Heads {
	Array x;
	size_t batch, row, head;
} Heads;

/* O = softmax(scale Q K^T) V in each head; causal: query i sees keys 0 ... i.
 * On a CPU a score of -inf counts nothing, and a row all of whose scores are
 * -inf has O = 0, L = -inf and no gradient. Otherwise q, k, v and scores are
 * finite; else rows of O that share a tile with the others may be NaN */
typedef struct Attention {
	size_t B, H, seqlen_q, seqlen_k, D;
	double scale;           /* > 0 */
	bool causal;
	Heads q, k, v, o;       /* (B, seqlen_q or seqlen_k, H, D), stored alike */
	Array L;              /* (B, H, seqlen_q) of TYPE_REAL: scores' logsumexp */
} Attention;

typedef struct AttentionGradient {
	Heads d_o;              /* given */
	Heads dq, dk, dv;       /* overwritten */
	/* (positions, D/2): dq and dk are rotated back by these angles; cosine.at
	 * NULL: not rotated */
	Array cosine, sine;
	/* else parts of dq may be added by atomics, in any order: faster on some
	 * kernels, and other last bits on every run */
	bool deterministic;
} AttentionGradient;

/* one version of FlashAttention */
typedef struct AttentionKernel {
	const char *name;       /* NULL ends a list of them */
	/* does it take these sizes, type, strides and alignment? g NULL: asked for
	 * the forward pass alone; a size of 0: for some size, of this type and D */
	bool (*supports)(Device *d, const Attention *a, const AttentionGradient *g);
	void (*forward)(Device *d, Attention a);
	void (*backward)(Device *d, Attention a, AttentionGradient g);
	/* bytes of scratch memory that it takes, in one block; g NULL: forward */
	size_t (*scratch)(Device *d, const Attention *a, const AttentionGradient *g);
} AttentionKernel;

// declare the arguments of a norm
/* which kernel of RMSNorm a GPU uses, see ops/norm_plan.h; on a CPU all are
 * one */
typedef enum NormVersion { NORM_BY_WIDTH, NORM_TWO_READS, NORM_HELD, NORM_PACKS,
	NORM_AHEAD, NORM_WARP, NORM_LOOPED, NORM_VERSIONS } NormVersion;

/* The forward pass: sum = x + branch, rho = 1/sqrt(mean(sum^2) + eps), y = g
 * sum rho, for rows of C elements. */
typedef struct NormForward {
	Array y;
	Array rho;      /* (rows) TYPE_REAL; rho.at NULL: not kept */
	Array sum;      /* in x.type; written if there is a branch */
	Array x;        /* TYPE_REAL, or the type of y */
	Array branch;   /* in y.type; branch.at NULL: none, and sum is not written */
	Array g;        /* (C) TYPE_REAL, or the type of y */
	size_t x_row, y_row;    /* elements between the starts of rows; 0: C */
	double eps;
	NormVersion version;    /* NORM_BY_WIDTH, or one that norm_plan has for C */
} NormForward;

/* The backward pass of it. */
typedef struct NormBackward {
	Array dsum;     /* (rows, C) += the gradient that comes through the norm */
	bool fresh;     /* dsum holds nothing yet and is overwritten */
	Array copy;     /* (rows, C) a copy of dsum in dy.type; copy.at NULL: none */
	Array dg;       /* (C) = beta dg + ...; beta is 0 or 1 */
	double beta;
	/* (rows, C) the forward's output made again, may lie over dy; y.at NULL:
	 * not wanted */
	Array y;
	Array dy, sum;  /* dsum and sum: TYPE_REAL, or all in the type of dy */
	Array g;        /* (C) TYPE_REAL, or the type of dy */
	Array rho;      /* (rows) TYPE_REAL; rho.at NULL: computed from sum */
	double eps;     /* read only where rho is computed */
	size_t x_row, dy_row, dx_row;   /* of sum, dy and dsum; 0: C */
	NormVersion version;
} NormBackward;

#endif
