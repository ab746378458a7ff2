/* fp8_gemm.h: a matmul of operands that are cast to FP8, to be timed */
#ifndef CASES_FP8_GEMM_H
#define CASES_FP8_GEMM_H

#include "ops/ops.h"

typedef struct Fp8Gemm {
	size_t m, n, k;                  /* from the caller */
	Device *device;
	Array C, A, B;                   /* (m, n), (m, k), (n, k); A and B in bf16 */
	Fp8Cast left, right;
} Fp8Gemm;

/* draws A and B; left: the format of A's codes; output: of C */
void fp8_gemm_new(Device *d, Fp8Gemm *g, Fp8Scaling by, Type left, Type output,
	uint64_t seed);
void fp8_gemm_free(Fp8Gemm *g);
/* work for the device's queue, given an Fp8Gemm: casts A, which was not; C =
 * A B^T of the codes */
void fp8_gemm_cast(void *gemm);
void fp8_gemm_multiply(void *gemm);

#endif
