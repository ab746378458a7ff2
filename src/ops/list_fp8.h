/* ops/list_fp8.h: casts to FP8 and matmuls of it, of ops/list.h */

OPERATION(void, fp8_cast, (Device *d, Fp8Cast c))
/* fused_adamw of weights (c.rows, c.columns), which are then rounded to bf16 and
 * cast by blocks, or by given maxima of tensors: source and x of c are not read,
 * nor other maxima. Nothing if *skip is not 0. Rows and columns are multiples of
 * FP8_UNIT */
OPERATION(void, fp8_adamw, (Device *d, Array w, Gradients g, Array m, Array v,
	const AdamWStep *step, const int32_t *skip, Fp8Cast c))
/* C (A.rows, B.rows) = A B^T + beta C, sums in fp32 or wider; beta is 0 or 1. A
 * is of FP8_ONE, FP8_ROWS or FP8_VECTORS; B the same, with FP8_BLOCKS for
 * FP8_VECTORS */
OPERATION(void, fp8_matmul, (Device *d, Array C, Fp8Matrix A, Fp8Matrix B,
	double beta))
/* history (window, sites) moves on by a row, which becomes the largest over the
 * ranks of seen (ranks, sites); maxima (sites) = the largest of its column; seen
 * = 0. All are of TYPE_REAL */
OPERATION(void, fp8_advance, (Device *d, Array maxima, Array history,
	int window, Array seen, int ranks, size_t sites))
