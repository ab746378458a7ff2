/* matmul.h: the shape of a matmul */
#ifndef OPS_MATMUL_H
#define OPS_MATMUL_H

#include <stdbool.h>
#include <stddef.h>

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

#ifdef __cplusplus
extern "C"
#endif
/* the same matmul with `outer` calls, each for a batch of `inner` matrices */
Matmul matmul_with_few_calls(Matmul s);

/* bytes of the workspace of a GPU's library, and of that of each of the streams
 * on which outer matrices are multiplied side by side */
enum { GEMM_SIDES = 4, GEMM_WORKSPACE = 32 << 20,
	GEMM_SIDE_WORKSPACE = 4 << 20 };

#endif
