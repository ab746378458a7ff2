#include "model/attention.h"

#include <math.h>

#include "model/buffers.h"
#include "ops/naive_attention.h"

// compute attention on packed projections
/* the heads of part 0, 1 or 2 of an array whose rows have `width` elements */
static Heads heads_of(const Model *m, Array x, size_t part, size_t width)
{
	size_t D = m->shape.d_head, A = m->shape.heads * D;
	return (Heads){ array_part(m->device, x, part * A), m->T * width, width, D };
}

/* qkv: as matmuls read it */
static Attention attention_of(const Model *m, const Activations *s, Array qkv)
{
	size_t H = m->shape.heads, D = m->shape.d_head, A = H * D;
	return (Attention){ .B = m->B, .H = H, .seqlen_q = m->T, .seqlen_k = m->T,
		.D = D, .group = 1, .scale = 1 / sqrt(D), .causal = true,
		.q = heads_of(m, qkv, 0, 3 * A), .k = heads_of(m, qkv, 1, 3 * A),
		.v = heads_of(m, qkv, 2, 3 * A), .o = heads_of(m, s->o, 0, A),
		.L = s->L, .P = s->P };
}

static AttentionGradient gradient_of(const Model *m, Array dO, Array dqkv)
{
	size_t A = m->shape.heads * m->shape.d_head;
	return (AttentionGradient){ .d_o = heads_of(m, dO, 0, A),
		.dq = heads_of(m, dqkv, 0, 3 * A), .dk = heads_of(m, dqkv, 1, 3 * A),
		.dv = heads_of(m, dqkv, 2, 3 * A) };
}

/* the projections as matmuls read them; release_cast frees a copy */
static Array cast_qkv(Model *m, const Activations *s)
{
	size_t count = 3 * m->B * m->T * m->shape.heads * m->shape.d_head;
	return cast_if_needed(m, s->qkv, count, m->policy->op[OP_SCORES].input);
}

static Array new_probabilities(Model *m)
{
	return activation(m, m->B * m->T * m->T * m->shape.heads, OP_SCORES,
		"attn.softmax");
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
	size_t N = m->B * m->T, H = m->shape.heads, A = H * m->shape.d_head;
	s->o = activation(m, N * A, OP_VALUES, "attn.values");
	if (m->flash) {
		s->L = statistic(m, N * H, "attn.logsumexp");
		RANGE(m->device, "flash")
			m->ops->attention_forward(m->device, attention_of(m, s, (Array){
				s->qkv.at, m->policy->op[OP_SCORES].input }));
	} else {
		s->P = new_probabilities(m);
		Array qkv = cast_qkv(m, s);
		Attention a = attention_of(m, s, qkv);
		naive_probabilities(m->device, &a, true);
		naive_values(m->device, &a);
		release_cast(m, &qkv, s->qkv);
	}
}

// propagate through attention on packed projections
static void naive_backward(Model *m, Activations *s, Array dqkv, Array dO)
{
	size_t count = m->B * m->T * m->shape.heads * m->shape.d_head;
	Array qkv = cast_qkv(m, s), d_o = cast_if_needed(m, dO, count,
		m->policy->op[OP_SCORES].input);
	bool again = s->P.at == NULL;
	if (again)
		s->P = new_probabilities(m);
	Attention a = attention_of(m, s, qkv);
	AttentionGradient g = gradient_of(m, d_o, dqkv);
	if (again)
		naive_probabilities(m->device, &a, true);
	naive_gradients(m->device, &a, &g, true);
	array_drop(m, &s->P);
	release_cast(m, &d_o, dO);
	release_cast(m, &qkv, s->qkv);
}

Array fused_attention_backward(Model *m, Activations *s, Array dO)
{
	size_t count = 3 * m->B * m->T * m->shape.heads * m->shape.d_head;
	Array dqkv = temporary(m, count, m->policy->op[OP_SCORES].output,
		"d attn.qkv");
	if (m->flash) {
		AttentionGradient g = gradient_of(m, dO, dqkv);
		g.cosine = m->cosine, g.sine = m->sine, g.deterministic = !m->atomic;
		RANGE(m->device, "flash")
			m->ops->attention_backward(m->device, attention_of(m, s, (Array){
				s->qkv.at, m->policy->op[OP_SCORES].input }), g);
		array_drop(m, &s->L);
	} else {
		naive_backward(m, s, dqkv, dO);
		fused_attention_rotate(m, dqkv, -1);
	}
	return dqkv;
}
