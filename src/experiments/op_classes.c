#include "experiments/op_classes.h"

enum { FIRST = 4 };                /* the step takes stamps of its own before */
static const Ops *whole;
static int class_of[NSTAMPS], nsegments;

static void enter(Device *d, int class)
{
	if (nsegments > FIRST && class_of[nsegments - 1] == class)
		return;
	device_stamp(d, COMPUTE, nsegments);
	class_of[nsegments++] = class;
}

void sum_classes(Device *d, double ms[NCLASSES])
{
	for (int c = 0; c < NCLASSES; c++)
		ms[c] = 0;
	for (int i = FIRST; i < nsegments; i++)
		ms[class_of[i]] += device_stamped_ms(d, i,
			i + 1 < nsegments ? i + 1 : 3);
}

static void instrumented_matmul(Device *d, Array C, Array A, Array B, Matmul s)
{
	enter(d, s.inner > 0 ? ATTENTION : LINEAR);
	whole->matmul(d, C, A, B, s);
}

static void instrumented_embedding_forward(Device *d, Array x, Array table,
	const int32_t *tokens, size_t N, size_t C)
{
	nsegments = FIRST;
	enter(d, ELEMENTWISE);
	whole->embedding_forward(d, x, table, tokens, N, C);
}

static void instrumented_embedding_backward(Device *d, Array dtable,
	double beta, Array dx, const int32_t *tokens, size_t N, size_t C, size_t V)
{
	enter(d, ELEMENTWISE);
	whole->embedding_backward(d, dtable, beta, dx, tokens, N, C, V);
}

static void instrumented_mean(Device *d, Array mean, int32_t *nonfinite,
	Array x, size_t n)
{
	enter(d, ELEMENTWISE);
	whole->mean(d, mean, nonfinite, x, n);
}
#define INSTRUMENTED(CLASS, OP, PARAMETERS, ARGUMENTS)   \
	static void instrumented_##OP PARAMETERS         \
	{                                                \
		enter(d, CLASS);                             \
		whole->OP ARGUMENTS;                         \
	}

INSTRUMENTED(ELEMENTWISE, fused_rmsnorm_forward,
	(Device *d, Array y, Array rho, Array sum, Array x,
	Array branch, Array g, size_t rows, size_t C, double eps),
	(d, y, rho, sum, x, branch, g, rows, C, eps))
INSTRUMENTED(ELEMENTWISE, fused_rmsnorm_backward,
	(Device *d, NormBackward b, size_t rows, size_t C), (d, b, rows, C))
INSTRUMENTED(ATTENTION, fused_rope, (Device *d, Array qkv, Array c, Array s,
	size_t B, size_t T, size_t H, size_t D, int direction), (d, qkv, c, s, B, T,
	H, D, direction))
INSTRUMENTED(ATTENTION, fused_softmax_forward, (Device *d, Array P, Array S,
	double scale, size_t matrices, size_t T), (d, P, S, scale, matrices, T))
INSTRUMENTED(ATTENTION, fused_softmax_backward, (Device *d, Array dS, Array dP,
	Array P, double scale, size_t matrices, size_t T), (d, dS, dP, P, scale,
	matrices, T))
INSTRUMENTED(ATTENTION, attention_forward, (Device *d, Attention a), (d, a))
INSTRUMENTED(ATTENTION, attention_backward, (Device *d, Attention a,
	AttentionGradient g), (d, a, g))
INSTRUMENTED(ELEMENTWISE, fused_swiglu_forward, (Device *d, Array h, Array ab,
	size_t rows, size_t F), (d, h, ab, rows, F))
INSTRUMENTED(ELEMENTWISE, fused_swiglu_backward,
	(Device *d, Array dab, Array h, Array dh, Array ab,
	size_t rows, size_t F), (d, dab, h, dh, ab, rows, F))
INSTRUMENTED(ELEMENTWISE, fused_cross_entropy, (Device *d, Array losses,
	Array dlogits, Array logits, const int32_t *targets, double scale, size_t N,
	size_t V), (d, losses, dlogits, logits, targets, scale, N, V))
INSTRUMENTED(OPTIMIZER, fused_adamw, (Device *d, Array w, Array low,
	Gradients g, Array m, Array v, size_t n, const AdamWStep *step,
	const int32_t *skip), (d, w, low, g, m, v, n, step, skip))

Ops instrument(const Ops *ops)
{
	Ops instrumented = *ops;
	whole = ops;
	instrumented.matmul = instrumented_matmul;
	instrumented.embedding_forward = instrumented_embedding_forward;
	instrumented.embedding_backward = instrumented_embedding_backward;
	instrumented.mean = instrumented_mean;
	instrumented.fused_rmsnorm_forward = instrumented_fused_rmsnorm_forward;
	instrumented.fused_rmsnorm_backward = instrumented_fused_rmsnorm_backward;
	instrumented.fused_rope = instrumented_fused_rope;
	instrumented.fused_softmax_forward = instrumented_fused_softmax_forward;
	instrumented.fused_softmax_backward = instrumented_fused_softmax_backward;
	instrumented.fused_swiglu_forward = instrumented_fused_swiglu_forward;
	instrumented.fused_swiglu_backward = instrumented_fused_swiglu_backward;
	instrumented.fused_cross_entropy = instrumented_fused_cross_entropy;
	instrumented.fused_adamw = instrumented_fused_adamw;
	instrumented.attention_forward = instrumented_attention_forward;
	instrumented.attention_backward = instrumented_attention_backward;
	return instrumented;
}
