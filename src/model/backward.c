#include "model/internal.h"

#include <assert.h>
#include <math.h>

static void heads_backward(Model *m, Saved *s, Array dq, Array dk, Array dv,
	Array dO)
{
	size_t B = m->B, T = m->T, H = m->shape.heads, C = m->shape.d_model,
		D = C / H;
	Type type = m->policy->op[OP_SCORES].output;
	Array dP = temporary(m, B * H * T * T, type, "d attn.softmax");
	const Matmul weights_by_rows = {          /* (T, T) times (T, D) */
		.m = T, .n = D, .k = T, .lda = T, .ldb = C, .ldc = C, .alpha = 1,
			.outer = B, .inner = H,
		.step_a = { H * T * T, T * T }, .step_b = { T * C, D },
			.step_c = { T * C, D },
	};
	Matmul transposed = weights_by_rows;
	transposed.trans_a = true;
	m->ops->matmul(dv, s->P, dO, transposed);
	m->ops->matmul(dP, dO, s->v, (Matmul){
		.m = T, .n = T, .k = D, .trans_b = true, .lda = C, .ldb = C, .ldc = T,
			.alpha = 1, .outer = B, .inner = H,
		.step_a = { T * C, D }, .step_b = { T * C, D }, .step_c = { H * T * T,
			T * T } });
	m->ops->softmax_backward(dP, dP, s->P, 1 / sqrt(D), B * H, T);
	m->ops->matmul(dq, dP, s->k, weights_by_rows);
	m->ops->matmul(dk, dP, s->q, transposed);
	array_drop(m, &dP);
	m->ops->rope(dq, dq, m->cosine, m->sine, B, T, H, D, -1);
	m->ops->rope(dk, dk, m->cosine, m->sine, B, T, H, D, -1);
}

static void attention_backward(Model *m, int layer, Array dnorm, Array dx,
	double beta)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	Type type = m->policy->op[OP_LINEAR].output;
	Saved *s = &m->saved[layer];
	Array dO = temporary(m, N * C, m->policy->op[OP_VALUES].output,
		"d attn.values");
	linear_backward(m, dO, 0, dx, s->o, in_block(m, layer, P_OUTPUT), beta, N);
	array_drop(m, &s->o);
	static const char *const names[3] = { "d attn.q", "d attn.k", "d attn.v" };
	Array d[3];
	for (int i = 0; i < 3; i++)
		d[i] = temporary(m, N * C, type, names[i]);
	heads_backward(m, s, d[0], d[1], d[2], dO);
	array_drop(m, &dO);
	array_drop(m, &s->P);
	for (int i = 0; i < 3; i++) {
		linear_backward(m, dnorm, i > 0, d[i], s->norm1, in_block(m, layer, P_Q
			+ i), beta, N);
		array_drop(m, &d[i]);
	}
	array_drop(m, &s->q);
	array_drop(m, &s->k);
	array_drop(m, &s->v);
	array_drop(m, &s->norm1);
}
static void ffn_backward(Model *m, int layer, Array dnorm, Array dx,
	double beta)
{
	size_t N = m->B * m->T, F = m->shape.d_ff;
	Type type = m->policy->op[OP_SWIGLU].output;
	Saved *s = &m->saved[layer];
	Array dh = temporary(m, N * F, type, "d ffn.swiglu");
	linear_backward(m, dh, 0, dx, s->h, in_block(m, layer, P_W2), beta, N);
	array_drop(m, &s->h);
	Array dup = temporary(m, N * F, type, "d ffn.w3");
	m->ops->swiglu_backward(dh, dup, dh, s->gate, s->up, N * F);
	array_drop(m, &s->gate);
	array_drop(m, &s->up);
	linear_backward(m, dnorm, 0, dh, s->norm2, in_block(m, layer, P_W1), beta,
		N);
	linear_backward(m, dnorm, 1, dup, s->norm2, in_block(m, layer, P_W3), beta,
		N);
	array_drop(m, &dup);
	array_drop(m, &dh);
	array_drop(m, &s->norm2);
}
static void block_backward(Model *m, int layer, Array dx, double beta)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	Saved *s = &m->saved[layer];
	int ln1 = in_block(m, layer, P_LN1), ln2 = in_block(m, layer, P_LN2);
	device_range_push(m->device, "layer");
	Array dnorm = temporary(m, N * C, TYPE_REAL, "d norm");
	ffn_backward(m, layer, dnorm, dx, beta);
	m->ops->rmsnorm_backward(dx, model_gradient(m, ln2), dnorm, s->middle,
		model_weight(m, ln2), s->rho2, N, C);
	array_drop(m, &s->middle);
	attention_backward(m, layer, dnorm, dx, beta);
	m->ops->rmsnorm_backward(dx, model_gradient(m, ln1), dnorm, s->x,
		model_weight(m, ln1), s->rho1, N, C);
	array_drop(m, &s->x);
	array_drop(m, &dnorm);
	device_range_pop(m->device);
}

void model_backward(Model *m, bool accumulate)
{
	assert(m->has_saved && m->losses.at
		&& "a forward pass with targets and keep comes first");
	size_t N = m->B * m->T, C = m->shape.d_model, V = m->shape.vocab;
	int last = shape_nparameters(&m->shape) - 1;
	double beta = accumulate && m->gradients.at ? 1 : 0;
	if (m->gradients.at == NULL)
		m->gradients = array_new(m, m->count, m->policy->gradient, MEM_GRADIENT,
			"gradients");
	if (beta == 0)
		for (int i = 0; i <= last; i++) {
			Parameter p = shape_parameter(&m->shape, i);
			if (i == 0 || p.gain)
				m->ops->fill(model_gradient(m, i), 0, p.count);
		}
	m->ops->cross_entropy_backward(m->logits, m->logits, m->lse, m->targets,
		1.0 / N, N, V);
	Array dnorm = temporary(m, N * C, TYPE_REAL, "d ln_final");
	linear_backward(m, dnorm, 0, m->logits, m->norm, last, beta, N);
	array_drop(m, &m->logits);
	array_drop(m, &m->norm);
	Array dx = temporary(m, N * C, m->policy->op[OP_RESIDUAL].output, "d residual");
	m->ops->fill(dx, 0, N * C);
	m->ops->rmsnorm_backward(dx, model_gradient(m, last - 1), dnorm, m->x,
		model_weight(m, last - 1), m->rho, N, C);
	array_drop(m, &dnorm);
	array_drop(m, &m->x);
	for (int layer = (int)m->shape.layers - 1; layer >= 0; layer--)
		block_backward(m, layer, dx, beta);
	m->ops->embedding_backward(model_gradient(m, 0), dx, m->tokens, N, C);
	array_drop(m, &dx);
	model_clear(m);
}
