#include "model/internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"

static void refuse_nonfinite(Model *m, Array a, size_t n, const char *where,
	const char *what)
{
	int32_t bad = 0;
	if (a.at == NULL)
		return;
	device_upload(m->device, m->nonfinite, &bad, sizeof bad);
	m->ops->count_nonfinite(m->device, m->nonfinite, a, n);
	device_download(m->device, &bad, m->nonfinite, sizeof bad);
	if (bad > 0)
		die("the loss is not finite; the first such tensor is %s%s (%d of "
			"%zu elements)", where, what, (int)bad, n);
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
		const Activations *s = &m->activations[layer];
		const struct { Array a; size_t n; const char *what; } order[] = {
			{ s->x, N * C, "input" }, { s->norm1, N * C, "ln1" },
			{ s->q, N * C, "attn.q" }, { s->k, N * C, "attn.k" },
			{ s->v, N * C, "attn.v" }, { s->qkv, 3 * N * C, "attn.qkv" },
			{ s->P, scores, "attn.softmax" },
			{ s->L, N * m->shape.heads, "attn.logsumexp" },
			{ s->o, N * C, "attn.values" },
			{ s->x_mid, N * C, "attn.residual" }, { s->norm2, N * C, "ln2" },
			{ s->gate, N * F, "ffn.w1" }, { s->up, N * F, "ffn.w3" },
			{ s->gate_up, 2 * N * F, "ffn.w1 and w3" },
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
static Matmul head_matmul(const Model *m)
{
	size_t T = m->T, H = m->shape.heads, C = m->shape.d_model, D = C / H;
	return (Matmul){
		.m = T, .outer = m->B, .inner = H, .alpha = 1,
		.step_a = { T * C, D }, .step_b = { T * C, D }, .step_c = { T * C, D },
	};
}

static void attention_forward(Model *m, int layer, Activations *s, bool keep)
{
	size_t B = m->B, T = m->T, H = m->shape.heads, C = m->shape.d_model,
		D = C / H, N = B * T;
	Array *const projections[3] = { &s->q, &s->k, &s->v };
	static const char *const names[3] = { "attn.q", "attn.k", "attn.v" };
	for (int i = 0; i < 3; i++) {
		*projections[i] = activation(m, N * C, OP_LINEAR, names[i]);
		linear_forward(m, *projections[i], s->norm1,
			(ParamSpan){ in_block(m, layer, P_Q + i), 1 }, N);
	}
	unless_kept(m, keep, &s->norm1);
	m->ops->rope(m->device, s->q, s->q, m->cosine, m->sine, B, T, H, D, 1);
	m->ops->rope(m->device, s->k, s->k, m->cosine, m->sine, B, T, H, D, 1);
	Matmul scores = head_matmul(m), values = scores;
	scores.n = T, scores.k = D, scores.trans_b = true;
	scores.lda = scores.ldb = C, scores.ldc = T;
	scores.step_c[0] = H * T * T, scores.step_c[1] = T * T;
	values.n = D, values.k = T;
	values.lda = T, values.ldb = values.ldc = C;
	values.step_a[0] = H * T * T, values.step_a[1] = T * T;
	s->P = activation(m, N * H * T, OP_SCORES, "attn.softmax");
	RANGE(m->device, "scores")
		attention_matmul(m, s->P, s->q, N * C, s->k, N * C, scores);
	RANGE(m->device, "softmax")
		m->ops->softmax_forward(m->device, s->P, s->P, 1 / sqrt(D), B * H, T);
	s->o = activation(m, N * C, OP_VALUES, "attn.values");
	RANGE(m->device, "values")
		attention_matmul(m, s->o, s->P, N * H * T, s->v, N * C, values);
	unless_kept(m, keep, &s->q);
	unless_kept(m, keep, &s->k);
	unless_kept(m, keep, &s->v);
	unless_kept(m, keep, &s->P);
}
static void normalise(Model *m, Array *y, Array *rho, Array *mu, Array x,
	int gain, const char *what)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	Array g = model_weight(m, gain);
	*rho = activation(m, N, OP_RESIDUAL, what);
	*y = activation(m, N * C, OP_NORM, what);
	if (m->layernorm)
		*mu = activation(m, N, OP_RESIDUAL, what);
	RANGE(m->device, "norm") {
		if (m->layernorm)
			m->ops->layernorm_forward(m->device, *y, *mu, *rho, x, g,
				(Array){ NULL, FP32 }, N, C, NORM_EPS);
		else
			m->ops->rmsnorm_forward(m->device, *y, *rho, x, g, N, C, NORM_EPS);
	}
}

static Array add_residual(Model *m, Array x, Array branch, size_t n,
	const char *what)
{
	Array sum = activation(m, n, OP_RESIDUAL, what);
	m->ops->add(m->device, sum, x, branch, n);
	return sum;
}

/* X W^T of a layer whose output has d_model columns */
static Array linear_of(Model *m, Array X, int parameter, const char *what)
{
	size_t N = m->B * m->T;
	Array branch = temporary(m, N * m->shape.d_model,
		m->policy->op[OP_LINEAR].output, what);
	linear_forward(m, branch, X, (ParamSpan){ parameter, 1 }, N);
	return branch;
}

static Array block_forward(Model *m, int layer, Array x, bool keep,
	bool save_input)
{
	size_t N = m->B * m->T, C = m->shape.d_model, F = m->shape.d_ff;
	Activations *s = &m->activations[layer];
	s->x = x;
	normalise(m, &s->norm1, &s->rho1, &s->mu1, s->x, in_block(m, layer, P_LN1),
		"ln1");
	Array branch = { NULL, FP32 };
	RANGE(m->device, "attention") {
		attention_forward(m, layer, s, keep);
		branch = linear_of(m, s->o, in_block(m, layer, P_OUTPUT), "attn.output");
		unless_kept(m, keep, &s->o);
	}
	s->x_mid = add_residual(m, s->x, branch, N * C, "residual after attention");
	array_drop(m, &branch);
	unless_kept(m, keep || save_input, &s->x);
	unless_kept(m, keep, &s->rho1);
	unless_kept(m, keep, &s->mu1);
	normalise(m, &s->norm2, &s->rho2, &s->mu2, s->x_mid,
		in_block(m, layer, P_LN2), "ln2");
	RANGE(m->device, "feed-forward") {
		s->gate = activation(m, N * F, OP_LINEAR, "ffn.w1");
		s->up = activation(m, N * F, OP_LINEAR, "ffn.w3");
		linear_forward(m, s->gate, s->norm2,
			(ParamSpan){ in_block(m, layer, P_W1), 1 }, N);
		linear_forward(m, s->up, s->norm2,
			(ParamSpan){ in_block(m, layer, P_W3), 1 }, N);
		unless_kept(m, keep, &s->norm2);
		s->h = activation(m, N * F, OP_SWIGLU, "ffn.swiglu");
		m->ops->swiglu_forward(m->device, s->h, s->gate, s->up, N * F);
		unless_kept(m, keep, &s->gate);
		unless_kept(m, keep, &s->up);
		branch = linear_of(m, s->h, in_block(m, layer, P_W2), "ffn.w2");
		unless_kept(m, keep, &s->h);
	}
	Array out = add_residual(m, s->x_mid, branch, N * C, "residual after ffn");
	array_drop(m, &branch);
	unless_kept(m, keep, &s->x_mid);
	unless_kept(m, keep, &s->rho2);
	unless_kept(m, keep, &s->mu2);
	return out;
}

Array eager_blocks_forward(Model *m, int first, int n, Array x, bool keep,
	bool save_input, bool output)
{
	for (int layer = first; layer < first + n; layer++)
		RANGE(m->device, "layer")
			x = block_forward(m, layer, x, keep, save_input && layer == first);
	if (!output)
		array_drop(m, &x);
	return x;
}
void model_clear(Model *m)
{
	for (int layer = 0; layer < m->shape.layers; layer++) {
		Activations *s = &m->activations[layer];
		Array *const all[] = { &s->x, &s->norm1, &s->rho1, &s->mu1, &s->q,
			&s->k, &s->v, &s->qkv, &s->P, &s->L, &s->o, &s->x_mid, &s->norm2,
			&s->rho2, &s->mu2, &s->gate, &s->up, &s->h, &s->gate_up };
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			array_drop(m, all[i]);
	}
	Array *const ends[] = { &m->x, &m->norm, &m->rho, &m->mu, &m->logits,
		&m->losses, &m->lse };
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		array_drop(m, ends[i]);
	m->has_activations = false;
}

void model_load(Model *m, const int32_t *tokens, const int32_t *targets,
	size_t B, size_t T)
{
	assert(T >= 1 && T <= (size_t)m->shape.context && B >= 1);
	Device *d = m->device;
	size_t nbytes = B * T * sizeof *tokens;
	if (B * T != m->B * m->T) {
		device_free(d, m->tokens);
		device_free(d, m->targets);
		m->tokens = device_alloc(d, nbytes, MEM_ACTIVATION, "tokens");
		m->targets = device_alloc(d, nbytes, MEM_ACTIVATION, "targets");
	}
	m->B = B, m->T = T, m->has_targets = targets != NULL;
	device_upload(d, m->tokens, tokens, nbytes);
	if (targets)
		device_upload(d, m->targets, targets, nbytes);
}

void model_run(Model *m, bool keep)
{
	size_t N = m->B * m->T, C = m->shape.d_model, V = m->shape.vocab;
	assert(N > 0 && "a batch is loaded first");
	model_clear(m);
	m->has_activations = keep;
	if (m->fused) {
		fused_forward(m, keep);
	} else {
		m->x = activation(m, N * C, OP_EMBEDDING, "embedding");
		m->ops->embedding_forward(m->device, m->x, model_weight(m, 0), m->tokens, N, C);
		for (int layer = 0; layer < m->shape.layers; layer++)
			RANGE(m->device, "layer")
				m->x = block_forward(m, layer, m->x, keep && m->checkpoint_every == 0,
					saves_input(m, keep, layer));
		int last = shape_nparameters(&m->shape) - 1;
		normalise(m, &m->norm, &m->rho, &m->mu, m->x, last - 1, "ln_final");
		m->logits = activation(m, N * V, OP_LINEAR, "logits");
		linear_forward(m, m->logits, m->norm, (ParamSpan){ last, 1 }, N);
		if (m->has_targets) {
			m->losses = activation(m, N, OP_LOSS, "losses");
			m->lse = activation(m, N, OP_LOSS, "logsumexp");
			m->ops->cross_entropy_forward(m->device, m->losses, m->lse, m->logits, m->targets, N,
				V);
		}
	}
	if (m->has_targets)
		m->ops->mean(m->device, m->loss, m->nonfinite, m->losses, N);
}

double model_loss(Model *m)
{
	real loss;
	array_read(m->device, &loss, m->loss, 1);
	if (!isfinite(loss)) {
		if (m->logits.at == NULL)
			model_run(m, true);
		name_first_nonfinite(m, m->B * m->T);
	}
	return loss;
}

double model_forward(Model *m, const int32_t *tokens, const int32_t *targets,
	size_t B, size_t T, bool keep)
{
	model_load(m, tokens, targets, B, T);
	model_run(m, keep);
	return targets ? model_loss(m) : 0;
}
