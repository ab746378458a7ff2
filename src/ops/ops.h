/* ops.h: every operation of the model, forward and backward, declared once.
 * Shapes are row-major, and no size is 0. "+=" marks outputs that are
 * accumulated into; the others are overwritten.
 * Outputs of elementwise operations, of rope and of softmax may lie over inputs
 * of the same shape and type. Activations and their gradients are rounded to
 * the type of the output; parameters' gradients, statistics and losses never
 * are. Pointers are to the device's memory. Calls may return before the work is
 * done: the host reads results by way of device.h. */
#ifndef OPS_OPS_H
#define OPS_OPS_H

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
	void *at;      /* on the CPU: real[] */
	Type type;     /* the format to which the values are rounded */
} Array;

/* C = alpha op(A) op(B) + beta C for outer*inner matrices; op(A): m x k, op(B):
 * k x n, C: m x n */
typedef struct Matmul {
	size_t m, n, k;
	bool trans_a, trans_b;
	/* elements from one row to the next, as stored */
	size_t lda, ldb, ldc;
	double alpha, beta;
	size_t outer, inner;            /* counts of matrices; 0 means 1 */
	/* elements to the next outer, inner matrix */
	size_t step_a[2], step_b[2], step_c[2];
} Matmul;
/* what one step needs, in the device's memory, so that a recorded step can be
 * replayed with new values */
typedef struct AdamWStep {
	/* 1 - lr decay; lr sqrt(1 - beta2^t) / (1 - beta1^t) */
	real keep, rate;
	real beta1, beta2, one_minus_beta1, one_minus_beta2, eps;
	real unscale;                   /* gradients are multiplied by it */
} AdamWStep;
/* element (b, t, h, d) is x[b batch + t row + h head + d] */
typedef struct Heads {
	Array x;
	size_t batch, row, head;
} Heads;

/* O = softmax(scale Q K^T) V in each head; causal: query i sees keys 0 ... i.
 * q, k, v are finite; else rows of O that share a tile with the others may be
 * NaN */
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
	/* (positions, D/2): q and k are rotated back by these angles; at NULL:
	 * no */
	Array cosine, sine;
	/* else parts of dq may be added by atomics, in any order: faster on some
	 * kernels, and other last bits on every run */
	bool deterministic;
} AttentionGradient;

/* one kernel of FlashAttention */
typedef struct AttentionKernel {
	const char *name;       /* NULL ends a list of them */
	/* by sizes, type, strides and alignment; g NULL: forward alone, a size of 0:
	 * some of this type and D */
	bool (*supports)(const Attention *a, const AttentionGradient *g);
	void (*forward)(Attention a);
	void (*backward)(Attention a, AttentionGradient g);
	/* bytes that backward holds beside its arguments */
	size_t (*scratch)(const Attention *a);
} AttentionKernel;
/* backward of sum = x + branch, y = g sum rho (fused.rmsnorm_forward) */
typedef struct NormBackward {
	Array dsum;     /* (rows, C) += the gradient that comes through the norm */
	bool fresh;     /* dsum holds nothing yet and is overwritten */
	Array copy;     /* (rows, C) dsum once more, in copy.type; at NULL: no */
	Array dg;       /* (C) = beta dg + ...; beta is 0 or 1 */
	double beta;
	Array y;        /* (rows, C) the forward's output; may be dy; at NULL: no */
	Array dy, sum, g, rho;
} NormBackward;

typedef struct FusedOps {
	/* sum = x + branch; rho = 1/sqrt(mean(sum^2) + eps); y = g sum rho.
	 * x, sum, rho: TYPE_REAL. branch.at NULL: sum is x and is not written */
	void (*rmsnorm_forward)(Array y, Array rho, Array sum, Array x, Array branch,
		Array g, size_t rows, size_t C, double eps);
	void (*rmsnorm_backward)(NormBackward b, size_t rows, size_t C);
	/* qkv: (B, T, 3, H, D); rotates q and k in place */
	void (*rope)(Array qkv, Array cosine, Array sine, size_t B, size_t T,
		size_t H, size_t D, int direction);
	/* as the eager ones */
	void (*softmax_forward)(Array P, Array S, double scale, size_t matrices,
		size_t T);
	void (*softmax_backward)(Array dS, Array dP, Array P, double scale,
		size_t matrices, size_t T);
	/* ab: (rows, 2, F), gate before up; h: (rows, F) */
	void (*swiglu_forward)(Array h, Array ab, size_t rows, size_t F);
	/* dab may be ab; h: the forward's result, may be dh */
	void (*swiglu_backward)(Array dab, Array h, Array dh, Array ab, size_t rows,
		size_t F);
	/* losses, and unless its at is NULL dlogits, which may be logits */
	void (*cross_entropy)(Array losses, Array dlogits, Array logits,
		const int32_t *targets, double scale, size_t N, size_t V);
	/* low: (n) w once more, in low.type; at NULL: no */
	void (*adamw)(Array w, Array low, Array g, Array m, Array v, size_t n,
		const AdamWStep *step, const int32_t *skip);
	/* is there FlashAttention for heads of D elements of this type? */
	bool (*supports_attention)(Type type, size_t D);
	/* bytes that attention_backward holds beside its arguments */
	size_t (*attention_scratch)(const Attention *a);
	/* reads q, k, v; writes o, L */
	void (*attention_forward)(Attention a);
	/* reads all of a */
	void (*attention_backward)(Attention a, AttentionGradient g);
} FusedOps;

typedef struct Ops {
	void   (*fill)(Array y, double value, size_t n);
	/* y[i] = sd random_truncated(seed, stream, i, bound) */
	void   (*draw)(Array y, size_t n, double sd, double bound, uint64_t seed,
		uint64_t stream);
	/* y = x, rounded to y.type */
	void   (*cast)(Array y, Array x, size_t n);
	/* may matmul read arrays of type `stored` as `wanted`, without a cast? */
	bool   (*reads)(Type stored, Type wanted);
	/* y = a + b */
	void   (*add)(Array y, Array a, Array b, size_t n);
	/* mean: one element; *nonfinite: is it infinite or NaN? */
	void   (*mean)(Array mean, int32_t *nonfinite, Array x, size_t n);
	/* *count += infinities and NaNs */
	void   (*count_nonfinite)(int32_t *count, Array x, size_t n);
	/* y = max(x, 0) */
	void   (*relu_forward)(Array y, Array x, size_t n);
	/* dx = dy where x > 0 */
	void   (*relu_backward)(Array dx, Array dy, Array x, size_t n);
	/* sums in fp32 or wider; A and B of one type */
	void   (*matmul)(Array C, Array A, Array B, Matmul shape);
	void   (*embedding_forward)(Array x, Array table, const int32_t *tokens,
		size_t N, size_t C);
	/* dtable (V, C) = beta dtable + ...; beta is 0 or 1 */
	void   (*embedding_backward)(Array dtable, double beta, Array dx,
		const int32_t *tokens, size_t N, size_t C, size_t V);
	void   (*rmsnorm_forward)(Array y, Array rho, Array x, Array g, size_t rows,
		size_t C, double eps);
	/* dx += dg += */
	void   (*rmsnorm_backward)(Array dx, Array dg, Array dy, Array x, Array g,
		Array rho, size_t rows, size_t C);
	/* y, x: (B, T, H, D); cosine, sine: (T or more, D/2); direction +1 forward, -1
	 * backward */
	void   (*rope)(Array y, Array x, Array cosine, Array sine, size_t B, size_t T,
		size_t H, size_t D, int direction);
	/* S, P, dS, dP: (matrices, T, T); columns after the diagonal give 0.
	 * S enters scaled by `scale`; dS is the gradient of the unscaled S */
	void   (*softmax_forward)(Array P, Array S, double scale, size_t matrices,
		size_t T);
	void   (*softmax_backward)(Array dS, Array dP, Array P, double scale,
		size_t matrices, size_t T);
	void   (*swiglu_forward)(Array h, Array a, Array b, size_t n);
	/* da may be dh */
	void   (*swiglu_backward)(Array da, Array db, Array dh, Array a, Array b,
		size_t n);
	/* y = g * (x - mean) * rstd + b for each row (mean, rstd: one a row);
	 * b.at, db.at NULL: no shift */
	void   (*layernorm_forward)(Array y, Array mean, Array rstd, Array x, Array g,
			Array b, size_t rows, size_t C, double eps);
	void   (*layernorm_backward)(Array dx, Array dg, Array db, Array dy, Array x,
			Array g, Array mean, Array rstd, size_t rows, size_t C);
			                                           /* dx += dg += db += */
	/* losses, lse: (N); logits, dlogits: (N, V), dlogits may be logits; scale: 1/N
	 * for the mean */
	void   (*cross_entropy_forward)(Array losses, Array lse, Array logits,
		const int32_t *targets, size_t N, size_t V);
	void   (*cross_entropy_backward)(Array dlogits, Array logits, Array lse,
		const int32_t *targets, double scale, size_t N,
			size_t V);
	/* w, m, v +=; nothing happens when *skip is not 0; skip may be NULL */
	void   (*adamw)(Array w, Array g, Array m, Array v, size_t n,
		const AdamWStep *step, const int32_t *skip);
	FusedOps fused;
	/* kernels of attention, the simplest first; fused.attention_* takes the
	 * last that it can */
	const AttentionKernel *attention_kernels;
} Ops;

const Ops *ops_for(const Device *device);

#endif
