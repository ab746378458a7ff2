/* cpu.h: the plain C operations; shapes and meaning as in ops.h */
#ifndef OPS_CPU_CPU_H
#define OPS_CPU_CPU_H

#include "ops/ops.h"

/* rounds n elements to y.type; nothing to do for the native type */
void   cpu_round(Array y, size_t n);
/* the array that starts at element `offset` */
static inline Array array_at(Array a, size_t offset)
{
	return (Array){ (real *)a.at + offset, a.type };
}

void   cpu_fill(Array y, double value, size_t n);
void   cpu_draw(Array y, size_t n, double sd, double bound, uint64_t seed,
	uint64_t stream);
void   cpu_cast(Array y, Array x, size_t n);
bool   cpu_reads(Type stored, Type wanted);
void   cpu_add(Array y, Array a, Array b, size_t n);
void   cpu_mean(Array mean, int32_t *nonfinite, Array x, size_t n);
void   cpu_count_nonfinite(int32_t *count, Array x, size_t n);
void   cpu_matmul(Array C, Array A, Array B, Matmul shape);
void   cpu_embedding_forward(Array x, Array table, const int32_t *tokens,
	size_t N, size_t C);
void   cpu_embedding_backward(Array dtable, double beta, Array dx,
	const int32_t *tokens, size_t N, size_t C, size_t V);
void   cpu_rmsnorm_forward(Array y, Array rho, Array x, Array g, size_t rows,
	size_t C, double eps);
void   cpu_rmsnorm_backward(Array dx, Array dg, Array dy, Array x, Array g,
	Array rho, size_t rows, size_t C);
void   cpu_rope(Array y, Array x, Array cosine, Array sine, size_t B, size_t T,
	size_t H, size_t D, int direction);
void   cpu_softmax_forward(Array P, Array S, double scale, size_t matrices,
	size_t T);
void   cpu_softmax_backward(Array dS, Array dP, Array P, double scale,
	size_t matrices, size_t T);
void   cpu_swiglu_forward(Array h, Array a, Array b, size_t n);
void   cpu_swiglu_backward(Array da, Array db, Array dh, Array a, Array b,
	size_t n);
void   cpu_cross_entropy_forward(Array losses, Array lse, Array logits,
	const int32_t *targets, size_t N, size_t V);
void   cpu_cross_entropy_backward(Array dlogits, Array logits, Array lse,
	const int32_t *targets, double scale, size_t N,
		size_t V);
void   cpu_adamw(Array w, Array g, Array m, Array v, size_t n,
	const AdamWStep *step, const int32_t *skip);
void   cpu_fused_rmsnorm_forward(Array y, Array rho, Array sum, Array x,
	Array branch, Array g, size_t rows, size_t C, double eps);
void   cpu_fused_rmsnorm_backward(NormBackward b, size_t rows, size_t C);
void   cpu_fused_rope(Array qkv, Array cosine, Array sine, size_t B, size_t T,
	size_t H, size_t D, int direction);
#define cpu_fused_softmax_forward cpu_softmax_forward
#define cpu_fused_softmax_backward cpu_softmax_backward
void   cpu_fused_swiglu_forward(Array h, Array ab, size_t rows, size_t F);
void   cpu_fused_swiglu_backward(Array dab, Array h, Array dh, Array ab,
	size_t rows, size_t F);
void   cpu_fused_cross_entropy(Array losses, Array dlogits, Array logits,
	const int32_t *targets, double scale, size_t N, size_t V);
void   cpu_fused_adamw(Array w, Array low, Array g, Array m, Array v, size_t n,
	const AdamWStep *step, const int32_t *skip);
bool   cpu_fused_supports_attention(Type type, size_t D);
size_t cpu_fused_attention_scratch(const Attention *a);
void   cpu_fused_attention_forward(Attention a);
void   cpu_fused_attention_backward(Attention a, AttentionGradient g);
extern const AttentionKernel cpu_attention_kernels[];
/* in tiles of so many queries and keys */
void   cpu_attention_forward_tiled(Attention a, size_t rows, size_t columns);
void   cpu_attention_backward_tiled(Attention a, AttentionGradient g,
	size_t rows, size_t columns);
void   cpu_relu_forward(Array y, Array x, size_t n);
void   cpu_relu_backward(Array dx, Array dy, Array x, size_t n);
void   cpu_layernorm_forward(Array y, Array mean, Array rstd, Array x, Array g,
		Array b, size_t rows, size_t C, double eps);
void   cpu_layernorm_backward(Array dx, Array dg, Array db, Array dy, Array x,
		Array g, Array mean, Array rstd, size_t rows, size_t C);

#endif
