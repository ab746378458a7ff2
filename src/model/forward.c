#include "model/internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"

static void refuse_nonfinite(Model *m, Array a, size_t n, const char *where,
	const char *what)
{
	size_t bad = a.at ? m->ops->count_nonfinite(a, n) : 0;
	if (bad > 0)
		die("the loss is not finite; the first such tensor is %s%s (%zu of "
			"%zu elements)", where, what, bad, n);
}

static _Noreturn void name_first_nonfinite(Model *m, size_t N)
{
	size_t C = m->shape.d_model, F = m->shape.d_ff,
		scores = N * m->T * m->shape.heads;
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		Parameter p = shape_parameter(&m->shape, i);
		refuse_nonfinite(m, model_weight(m, i), p.count, "", p.name);
	}
	for (int layer = 0; layer < m->shape.layers; layer++) {
		const Saved *s = &m->saved[layer];
		const struct { Array a; size_t n; const char *what; } order[] = {
			{ s->x, N * C, "input" }, { s->norm1, N * C, "ln1" },
			{ s->q, N * C, "attn.q" }, { s->k, N * C, "attn.k" },
			{ s->v, N * C, "attn.v" }, { s->P, scores, "attn.softmax" },
			{ s->o, N * C, "attn.values" },
			{ s->middle, N * C, "attn.residual" }, { s->norm2, N * C, "ln2" },
			{ s->gate, N * F, "ffn.w1" }, { s->up, N * F, "ffn.w3" },
			{ s->h, N * F, "ffn.swiglu" },
		};
		char where[32];
		snprintf(where, sizeof where, "layers.%d.", layer);
		for (size_t i = 0; i < sizeof order / sizeof *order; i++)
			refuse_nonfinite(m, order[i].a, order[i].n, where, order[i].what);
	}
	refuse_nonfinite(m, m->x, N * C, "", "the residual stream");
	refuse_nonfinite(m, m->norm, N * C, "", "ln_final");
	refuse_nonfinite(m, m->logits, N * m->shape.vocab, "", "logits");
	die("the loss is not finite, though every tensor is");
}
static void unless_kept(Model *m, bool keep, Array *a)
{
	if (!keep)
		array_drop(m, a);
}
static Matmul head_products(const Model *m)
{
	size_t T = m->T, H = m->shape.heads, C = m->shape.d_model, D = C / H;
	return (Matmul){
		.m = T, .outer = m->B, .inner = H, .alpha = 1,
		.step_a = { T * C, D }, .step_b = { T * C, D }, .step_c = { T * C, D },
	};
}

static void attend(Model *m, int layer, Saved *s, bool keep)
{
	size_t B = m->B, T = m->T, H = m->shape.heads, C = m->shape.d_model,
		D = C / H, N = B * T;
	Array *const projections[3] = { &s->q, &s->k, &s->v };
	static const char *const names[3] = { "attn.q", "attn.k", "attn.v" };
	for (int i = 0; i < 3; i++) {
		*projections[i] = activation(m, N * C, OP_LINEAR, names[i]);
		linear_forward(m, *projections[i], s->norm1,
			in_block(m, layer, P_Q + i), N);
	}
	unless_kept(m, keep, &s->norm1);
	m->ops->rope(s->q, s->q, m->cosine, m->sine, B, T, H, D, 1);
	m->ops->rope(s->k, s->k, m->cosine, m->sine, B, T, H, D, 1);
	Matmul scores = head_products(m), values = scores;
	scores.n = T, scores.k = D, scores.trans_b = true;
	scores.lda = scores.ldb = C, scores.ldc = T;
	scores.step_c[0] = H * T * T, scores.step_c[1] = T * T;
	values.n = D, values.k = T;
	values.lda = T, values.ldb = values.ldc = C;
	values.step_a[0] = H * T * T, values.step_a[1] = T * T;
	s->P = activation(m, N * H * T, OP_SCORES, "attn.softmax");
	m->ops->matmul(s->P, s->q, s->k, scores);
	s->P.type = m->policy->op[OP_SOFTMAX].output;
	m->ops->softmax_forward(s->P, s->P, 1 / sqrt(D), B * H, T);
	s->o = activation(m, N * C, OP_VALUES, "attn.values");
	m->ops->matmul(s->o, s->P, s->v, values);
	unless_kept(m, keep, &s->q);
	unless_kept(m, keep, &s->k);
	unless_kept(m, keep, &s->v);
	unless_kept(m, keep, &s->P);
}
static void normalise(Model *m, Array *y, Array *rho, Array x, int gain,
	const char *what)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	*rho = activation(m, N, OP_RESIDUAL, what);
	*y = activation(m, N * C, OP_NORM, what);
	m->ops->rmsnorm_forward(*y, *rho, x, model_weight(m, gain), N, C, NORM_EPS);
}

static Array add_residual(Model *m, Array x, Array branch, size_t n,
	const char *what)
{
	Array sum = activation(m, n, OP_RESIDUAL, what);
	m->ops->add(sum, x, branch, n);
	return sum;
}

static Array block_forward(Model *m, int layer, Array x, bool keep)
{
	size_t N = m->B * m->T, C = m->shape.d_model, F = m->shape.d_ff;
	Saved *s = &m->saved[layer];
	s->x = x;
	device_range_push(m->device, "layer");
	normalise(m, &s->norm1, &s->rho1, s->x, in_block(m, layer, P_LN1), "ln1");
	attend(m, layer, s, keep);
	Type type = m->policy->op[OP_LINEAR].output;
	Array branch = temporary(m, N * C, type, "attn.output");
	linear_forward(m, branch, s->o, in_block(m, layer, P_OUTPUT), N);
	unless_kept(m, keep, &s->o);
	s->middle = add_residual(m, s->x, branch, N * C, "residual after attention");
	array_drop(m, &branch);
	unless_kept(m, keep, &s->x);
	unless_kept(m, keep, &s->rho1);
	normalise(m, &s->norm2, &s->rho2, s->middle, in_block(m, layer, P_LN2), "ln2");
	s->gate = activation(m, N * F, OP_LINEAR, "ffn.w1");
	s->up = activation(m, N * F, OP_LINEAR, "ffn.w3");
	linear_forward(m, s->gate, s->norm2, in_block(m, layer, P_W1), N);
	linear_forward(m, s->up, s->norm2, in_block(m, layer, P_W3), N);
	unless_kept(m, keep, &s->norm2);
	s->h = activation(m, N * F, OP_SWIGLU, "ffn.swiglu");
	m->ops->swiglu_forward(s->h, s->gate, s->up, N * F);
	unless_kept(m, keep, &s->gate);
	unless_kept(m, keep, &s->up);
	branch = temporary(m, N * C, type, "ffn.w2");
	linear_forward(m, branch, s->h, in_block(m, layer, P_W2), N);
	unless_kept(m, keep, &s->h);
	Array out = add_residual(m, s->middle, branch, N * C, "residual after ffn");
	array_drop(m, &branch);
	unless_kept(m, keep, &s->middle);
	unless_kept(m, keep, &s->rho2);
	device_range_pop(m->device);
	return out;
}
void model_clear(Model *m)
{
	for (int layer = 0; layer < m->shape.layers; layer++) {
		Saved *s = &m->saved[layer];
		Array *const all[] = { &s->x, &s->norm1, &s->rho1, &s->q, &s->k, &s->v,
			&s->P, &s->o, &s->middle, &s->norm2,
			&s->rho2, &s->gate, &s->up, &s->h };
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			array_drop(m, all[i]);
	}
	Array *const ends[] = { &m->x, &m->norm, &m->rho, &m->logits, &m->losses,
		&m->lse };
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		array_drop(m, ends[i]);
	device_free(m->device, m->tokens);
	device_free(m->device, m->targets);
	m->tokens = m->targets = NULL;
	m->has_saved = false;
}

double model_forward(Model *m, const int32_t *tokens, const int32_t *targets,
	size_t B, size_t T, bool keep)
{
	assert(T >= 1 && T <= (size_t)m->shape.context && B >= 1);
	size_t N = B * T, C = m->shape.d_model, V = m->shape.vocab;
	model_clear(m);
	m->B = B, m->T = T, m->has_saved = keep;
	m->tokens = device_alloc(m->device, N * sizeof *tokens, MEM_ACTIVATION,
		"tokens");
	device_upload(m->device, m->tokens, tokens, N * sizeof *tokens);
	if (targets) {
		m->targets = device_alloc(m->device, N * sizeof *targets, MEM_ACTIVATION,
			"targets");
		device_upload(m->device, m->targets, targets, N * sizeof *targets);
	}
	m->x = activation(m, N * C, OP_EMBEDDING, "embedding");
	m->ops->embedding_forward(m->x, model_weight(m, 0), m->tokens, N, C);
	for (int layer = 0; layer < m->shape.layers; layer++)
		m->x = block_forward(m, layer, m->x, keep);
	int last = shape_nparameters(&m->shape) - 1;
	normalise(m, &m->norm, &m->rho, m->x, last - 1, "ln_final");
	m->logits = activation(m, N * V, OP_LINEAR, "logits");
	linear_forward(m, m->logits, m->norm, last, N);
	if (targets == NULL)
		return 0;
	m->losses = activation(m, N, OP_LOSS, "losses");
	m->lse = activation(m, N, OP_LOSS, "logsumexp");
	m->ops->cross_entropy_forward(m->losses, m->lse, m->logits, m->targets, N, V);
	double loss = m->ops->mean(m->losses, N);
	if (!isfinite(loss))
		name_first_nonfinite(m, N);
	return loss;
}
