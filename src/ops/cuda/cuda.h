/* cuda.h: the CUDA operations; shapes and meaning as in ops.h */
#ifndef OPS_CUDA_CUDA_H
#define OPS_CUDA_CUDA_H

#include "ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A and B both FP32, TF32 (stored as fp32), BF16 or FP16; C: FP32, BF16, FP16 */
void   cuda_matmul(Array C, Array A, Array B, Matmul shape);
/* the same by plain code, for layouts that the library does not take */
void   cuda_matmul_fallback(Array C, Array A, Array B, Matmul shape);
/* matmuls that went to cuda_matmul_fallback since the device was opened */
size_t cuda_matmul_fallbacks(void);
void cuda_fused_rmsnorm_forward(Array y, Array rho, Array sum, Array x,
	Array branch, Array g, size_t rows, size_t C, double eps);
void cuda_fused_rmsnorm_backward(NormBackward b, size_t rows, size_t C);
void cuda_fused_rope(Array qkv, Array cosine, Array sine, size_t B, size_t T,
	size_t H, size_t D, int direction);
void cuda_fused_softmax_forward(Array P, Array S, double scale,
	size_t matrices, size_t T);
void cuda_fused_softmax_backward(Array dS, Array dP, Array P, double scale,
	size_t matrices, size_t T);
void cuda_fused_swiglu_forward(Array h, Array ab, size_t rows, size_t F);
void cuda_fused_swiglu_backward(Array dab, Array h, Array dh, Array ab,
	size_t rows, size_t F);
void cuda_fused_cross_entropy(Array losses, Array dlogits, Array logits,
	const int32_t *targets, double scale, size_t N, size_t V);
void cuda_fused_adamw(Array w, Array low, Array g, Array m, Array v, size_t n,
	const AdamWStep *step, const int32_t *skip);
bool cuda_fused_supports_attention(Type type, size_t D);
size_t cuda_fused_attention_scratch(const Attention *a);
void cuda_fused_attention_forward(Attention a);
void cuda_fused_attention_backward(Attention a, AttentionGradient g);
extern const AttentionKernel cuda_attention_kernels[];
/* a row at a time, on CUDA cores (simt) */
bool cuda_simt_supports(const Attention *a, const AttentionGradient *g);
void cuda_simt_forward(Attention a);
void cuda_simt_backward(Attention a, AttentionGradient g);
/* tiles on tensor cores, by mma.sync */
bool cuda_mma_sync_supports(const Attention *a, const AttentionGradient *g);
void cuda_mma_sync_forward(Attention a);
void cuda_mma_sync_backward(Attention a, AttentionGradient g);
size_t cuda_mma_sync_scratch(const Attention *a);
/* sum (C) = beta sum + the sum of the rows of partial (rows, C), always in one
 * order */
void cuda_sum_rows(float *sum, double beta, const float *partial, size_t rows,
	size_t C);
void   cuda_fill(Array y, double value, size_t n);
void   cuda_draw(Array y, size_t n, double sd, double bound, uint64_t seed,
	uint64_t stream);
void   cuda_cast(Array y, Array x, size_t n);
bool   cuda_reads(Type stored, Type wanted);
void   cuda_add(Array y, Array a, Array b, size_t n);
void   cuda_mean(Array mean, int32_t *nonfinite, Array x, size_t n);
void   cuda_count_nonfinite(int32_t *count, Array x, size_t n);
void   cuda_relu_forward(Array y, Array x, size_t n);
void   cuda_relu_backward(Array dx, Array dy, Array x, size_t n);
void   cuda_embedding_forward(Array x, Array table, const int32_t *tokens,
	size_t N, size_t C);
void   cuda_embedding_backward(Array dtable, double beta, Array dx,
	const int32_t *tokens, size_t N, size_t C, size_t V);
void   cuda_rmsnorm_forward(Array y, Array rho, Array x, Array g, size_t rows,
	size_t C, double eps);
void   cuda_rmsnorm_backward(Array dx, Array dg, Array dy, Array x, Array g,
	Array rho, size_t rows, size_t C);
void   cuda_rope(Array y, Array x, Array cosine, Array sine, size_t B, size_t T,
	size_t H, size_t D, int direction);
void   cuda_softmax_forward(Array P, Array S, double scale, size_t matrices,
	size_t T);
void   cuda_softmax_backward(Array dS, Array dP, Array P, double scale,
	size_t matrices, size_t T);
void   cuda_swiglu_forward(Array h, Array a, Array b, size_t n);
void   cuda_swiglu_backward(Array da, Array db, Array dh, Array a, Array b,
	size_t n);
void   cuda_layernorm_forward(Array y, Array mean, Array rstd, Array x, Array g,
	Array b, size_t rows, size_t C, double eps);
void   cuda_layernorm_backward(Array dx, Array dg, Array db, Array dy, Array x,
	Array g, Array mean, Array rstd, size_t rows, size_t C);
void   cuda_cross_entropy_forward(Array losses, Array lse, Array logits,
	const int32_t *targets, size_t N, size_t V);
void   cuda_cross_entropy_backward(Array dlogits, Array logits, Array lse,
	const int32_t *targets, double scale, size_t N, size_t V);
void   cuda_adamw(Array w, Array g, Array m, Array v, size_t n,
	const AdamWStep *step, const int32_t *skip);

#ifdef __cplusplus
}
#endif

#endif
