/* cuda.h: the CUDA operations; shapes and meaning as in ops.h */
#ifndef OPS_CUDA_CUDA_H
#define OPS_CUDA_CUDA_H

#include "ops/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cuda_NAME for each operation of the list that is no formula. cuda_matmul takes
 * A and B of one type, FP32, TF32 (stored as fp32), BF16 or FP16, and C of FP32,
 * BF16 or FP16 */
#define OPERATION(TYPE, NAME, PARAMETERS) TYPE cuda_##NAME PARAMETERS;
#define FORMULA(TYPE, NAME, PARAMETERS)
#include "ops/list.h"
#undef OPERATION
/* all of them, and the formulas */
extern const struct Ops cuda_ops;

// declare the CUDA kernels
/* a matmul by plain code, for layouts that the library does not take */
void   cuda_matmul_fallback(Device *d, Array C, Array A, Array B, Matmul shape);
/* matmuls that went to cuda_matmul_fallback since the device was opened */
size_t cuda_matmul_fallbacks(Device *d);

/* x (rows, k), FP32: the numbers that codes and scales stand for */
void   cuda_fp8_numbers(Device *d, Array x, Fp8Matrix m);
/* matmuls in FP8 that went to fp32, as the library refused them, since the device
 * was opened */
size_t cuda_fp8_fallbacks(Device *d);

// declare the fused kernels' launchers
extern const AttentionKernel cuda_attention_kernels[];
/* bytes of scratch memory for dK and dV of each head of Q, if heads are shared */
size_t cuda_group_scratch(const Attention *a, const AttentionGradient *g);
/* runs a backward pass that stores dK and dV of each head of Q, and sums them */
void cuda_sum_over_groups(Device *d, Attention a, AttentionGradient g,
	void (*backward)(Device *d, Attention a, AttentionGradient g));
/* a row at a time, on CUDA cores (simt) */
bool cuda_simt_supports(Device *d, const Attention *a,
	const AttentionGradient *g);
void cuda_simt_forward(Device *d, Attention a);
void cuda_simt_backward(Device *d, Attention a, AttentionGradient g);
/* tile by tile on tensor cores (mma.sync) */
bool cuda_mma_sync_supports(Device *d, const Attention *a,
	const AttentionGradient *g);
void cuda_mma_sync_forward(Device *d, Attention a);
void cuda_mma_sync_backward(Device *d, Attention a, AttentionGradient g);
size_t cuda_mma_sync_scratch(Device *d, const Attention *a,
	const AttentionGradient *g);
/* sum (C) = beta sum + the sum of the rows of partial (rows, C), always in one
 * order, in fp32, rounded once to sum.type: FP32, BF16 or FP16 */
void cuda_sum_rows(Device *d, Array sum, double beta, const float *partial,
	size_t rows, size_t C);

#ifdef __cplusplus
}
#endif

#endif
