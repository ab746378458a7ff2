#include "model/attention.h"

#include <math.h>

#include "model/buffers.h"
#include "model/linear.h"

// compute attention on packed projections
/* the heads of part 0, 1 or 2 of an array whose rows have `width` elements */
static Heads heads_of(const Model *m, Array x, size_t part, size_t width)
{
	size_t D = m->shape.d_head, A = m->shape.heads * D;
	return (Heads){ array_part(m->device, x, part * A), m->T * width, width, D };
}

static Attention attention_of(const Model *m, const Activations *s)
{
	size_t H = m->shape.heads, D = m->shape.d_head, A = H * D;
	Array qkv = { s->qkv.at, m->policy->op[OP_SCORES].input };
	return (Attention){ .B = m->B, .H = H, .seqlen_q = m->T, .seqlen_k = m->T,
		.D = D, .group = 1, .scale = 1 / sqrt(D), .causal = true,
		.q = heads_of(m, qkv, 0, 3 * A), .k = heads_of(m, qkv, 1, 3 * A),
		.v = heads_of(m, qkv, 2, 3 * A), .o = heads_of(m, s->o, 0, A),
		.L = s->L };
}

// describe the matmuls of packed projections
typedef struct PackedQkv {
	size_t T, H, A, D;
	Matmul rows;         /* (T, T) times (T, D), both for each head */
	Array q, k, v;       /* views into qkv */
} PackedQkv;

static PackedQkv packed_qkv(const Model *m, Array qkv, size_t ldc)
{
	size_t T = m->T, H = m->shape.heads, D = m->shape.d_head, A = H * D;
	return (PackedQkv){
		.T = T, .H = H, .A = A, .D = D, .q = qkv,
		.k = array_part(m->device, qkv, A),
		.v = array_part(m->device, qkv, 2 * A),
		.rows = { .m = T, .n = D, .k = T, .lda = T, .ldb = 3 * A, .ldc = ldc,
			.alpha = 1, .outer = m->B, .inner = H,
			.step_a = { H * T * T, T * T }, .step_b = { T * 3 * A, D },
			.step_c = { T * ldc, D } },
	};
}

// compute P
/* elements from part i of qkv (q, k or v) to its end */
static size_t elements_to_end(const Model *m, size_t i)
{
	return (3 * m->B * m->T - i) * m->shape.heads * m->shape.d_head;
}

static void attention_probabilities(Model *m, Activations *s,
	const PackedQkv *h)
{
	size_t T = h->T, H = h->H;
	s->P = activation(m, m->B * H * T * T, OP_SCORES, "attn.softmax");
	RANGE(m->device, "scores")
		attention_matmul(m, s->P, h->q, elements_to_end(m, 0), h->k,
			elements_to_end(m, 1), (Matmul){
			.m = T, .n = T, .k = h->D, .trans_b = true, .alpha = 1,
			.lda = 3 * h->A, .ldb = 3 * h->A, .ldc = T, .outer = m->B,
			.inner = H, .step_a = { T * 3 * h->A, h->D },
			.step_b = { T * 3 * h->A, h->D }, .step_c = { H * T * T, T * T } });
	RANGE(m->device, "softmax")
		m->ops->fused_softmax_forward(m->device, s->P, s->P, 1 / sqrt(h->D),
			m->B * H, T);
}

// rotate, and attend
void fused_attention_rotate(Model *m, Array qkv, int direction)
{
	RANGE(m->device, "rope")
		m->ops->fused_rope(m->device, qkv, m->cosine, m->sine, m->B, m->T,
			m->shape.heads, m->shape.d_head, direction);
}

void fused_attention_forward(Model *m, Activations *s)
{
	size_t N = m->B * m->T, H = m->shape.heads, D = m->shape.d_head, A = H * D;
	s->o = activation(m, N * A, OP_VALUES, "attn.values");
	if (m->flash) {
		s->L = statistic(m, N * H, "attn.logsumexp");
		RANGE(m->device, "flash")
			m->ops->attention_forward(m->device, attention_of(m, s));
	} else {
		PackedQkv x = packed_qkv(m, s->qkv, A);
		attention_probabilities(m, s, &x);
		RANGE(m->device, "values")
			attention_matmul(m, s->o, s->P, N * H * m->T, x.v,
				elements_to_end(m, 2), x.rows);
	}
}

// propagate through attention on packed projections
static void naive_attention_backward(Model *m, Activations *s, Array dqkv,
	Array dO)
{
	size_t N = m->B * m->T, A = m->shape.heads * m->shape.d_head;
	PackedQkv h = packed_qkv(m, s->qkv, 3 * A), d = packed_qkv(m, dqkv, A);
	size_t T = h.T, H = h.H, scores = N * H * T;
	if (s->P.at == NULL)
		attention_probabilities(m, s, &h);
	Array dP = temporary(m, scores, dqkv.type, "d attn.softmax");
	Matmul transposed = h.rows, values = h.rows;
	transposed.trans_a = values.trans_a = true;
	values.ldb = A, values.step_b[0] = T * A;
	// find the gradients of V and P of packed projections
	RANGE(m->device, "values") {
		attention_matmul(m, d.v, s->P, scores, dO, N * A, values);
		attention_matmul(m, dP, dO, N * A, h.v, elements_to_end(m, 2), (Matmul){
			.m = T, .n = T, .k = h.D, .trans_b = true, .alpha = 1, .lda = A,
			.ldb = 3 * A, .ldc = T, .outer = m->B, .inner = H,
			.step_a = { T * A, h.D }, .step_b = { T * 3 * A, h.D },
			.step_c = { H * T * T, T * T } });
	}
	RANGE(m->device, "softmax")
		m->ops->fused_softmax_backward(m->device, dP, dP, s->P, 1 / sqrt(h.D),
			m->B * H, T);
	array_drop(m, &s->P);
	RANGE(m->device, "scores") {
		attention_matmul(m, d.q, dP, scores, h.k, elements_to_end(m, 1), h.rows);
		attention_matmul(m, d.k, dP, scores, h.q, elements_to_end(m, 0),
			transposed);
	}
	array_drop(m, &dP);
}

// propagate through attention on packed projections
Array fused_attention_backward(Model *m, Activations *s, Array dO)
{
	size_t N = m->B * m->T, H = m->shape.heads, D = m->shape.d_head, A = H * D;
	Array dqkv = temporary(m, 3 * N * A, m->policy->op[OP_SCORES].output,
		"d attn.qkv");
	if (m->flash) {
		AttentionGradient g = { .d_o = heads_of(m, dO, 0, A),
			.dq = heads_of(m, dqkv, 0, 3 * A),
			.dk = heads_of(m, dqkv, 1, 3 * A),
			.dv = heads_of(m, dqkv, 2, 3 * A), .cosine = m->cosine,
			.sine = m->sine, .deterministic = !m->atomic };
		RANGE(m->device, "flash")
			m->ops->attention_backward(m->device, attention_of(m, s), g);
		array_drop(m, &s->L);
	} else {
		naive_attention_backward(m, s, dqkv, dO);
		fused_attention_rotate(m, dqkv, -1);
	}
	return dqkv;
}
