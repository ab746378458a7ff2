/* fp8_error.h: the error of a matmul of narrow operands, measured and
 * predicted */
#ifndef CASES_FP8_ERROR_H
#define CASES_FP8_ERROR_H

#include "ops/ops.h"

typedef struct Fp8ErrorCase {
	size_t m, n, k;
	double sd, outlier;              /* of the left operand; 0: no outlier */
	Type left, right;                /* BF16, or formats of FP8 */
	Fp8Scaling scaling;              /* of FP8: by maxima of its own */
} Fp8ErrorCase;

/* relative to the rows of A B^T (m, n) in double, A (m, k) and B (n, k) */
double fp8_error_measured(Device *d, const Fp8ErrorCase *c, uint64_t seed);
double fp8_error_predicted(const Fp8ErrorCase *c);

#endif
