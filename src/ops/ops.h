/* ops.h: every operation of the model, forward and backward, declared once.
 * Shapes are row-major. "+=" marks outputs that are accumulated into; the
 * others are overwritten.
 * Outputs of elementwise operations, of rope and of softmax may lie over inputs
 * of the same shape. Activations and their gradients are rounded to the type of
 * the output; parameters' gradients, statistics and losses never are. */
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
	size_t outer, inner;            /* numbers of matrices; 0 means 1 */
	/* elements to the next outer, inner matrix */
	size_t step_a[2], step_b[2], step_c[2];
} Matmul;
typedef struct AdamWStep {
	double lr, beta1, beta2, eps, decay;
	long t;                             /* 1 for the first step */
} AdamWStep;

typedef struct Ops {
	void   (*fill)(Array y, double value, size_t n);
	/* y = x, rounded to y.type */
	void   (*cast)(Array y, Array x, size_t n);
	/* y = a + b */
	void   (*add)(Array y, Array a, Array b, size_t n);
	double (*mean)(Array x, size_t n);
	/* infinities and NaNs */
	size_t (*count_nonfinite)(Array x, size_t n);
	/* y = max(x, 0) */
	void   (*relu_forward)(Array y, Array x, size_t n);
	/* dx = dy where x > 0 */
	void   (*relu_backward)(Array dx, Array dy, Array x, size_t n);
	/* sums in fp32 or wider */
	void   (*matmul)(Array C, Array A, Array B, Matmul shape);
	void   (*embedding_forward)(Array x, Array table, const int32_t *tokens,
		size_t N, size_t C);
	/* dtable += */
	void   (*embedding_backward)(Array dtable, Array dx, const int32_t *tokens,
		size_t N, size_t C);
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
	/* y = g * (x - mean) * rstd + b for each row (mean, rstd: one a row) */
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
	void   (*adamw)(Array w, Array g, Array m, Array v, size_t n, AdamWStep step);
} Ops;

const Ops *ops_for(const Device *device);
/* the array that starts at element `offset` */
static inline Array array_at(Array a, size_t offset);

static inline Array array_at(Array a, size_t offset)
{
	return (Array){ (real *)a.at + offset, a.type };
}

#endif
