#include "model/internal.h"

#include <assert.h>
#include <math.h>

static void linear_backward(Model *m, Array dX, double beta, Array dY, Array X,
	int parameter, double beta_w, size_t N)
{
	ParamSpan W = { parameter, 1 };
	Parameter p = shape_parameter(&m->shape, parameter);
	Array dy = take_as(m, dY, N * p.rows, m->policy->op[OP_LINEAR].input);
	linear_backward_input(m, dX, beta, dy, W, N);
	linear_backward_weight(m, dy, X, W, beta_w, N);
	give_back(m, &dy, dY);
}

static void norm_backward(Model *m, Array dx, Array dy, Array x, int gain,
	Array rho, Array mu)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	Array dg = model_gradient(m, gain), g = model_weight(m, gain);
	RANGE(m->device, "norm") {
		if (m->layernorm)
			m->ops->layernorm_backward(m->device, dx, dg, (Array){ NULL, FP32 }, dy, x, g,
				mu, rho, N, C);
		else
			m->ops->rmsnorm_backward(m->device, dx, dg, dy, x, g, rho, N, C);
	}
}
static void heads_backward(Model *m, Activations *s, Array dq, Array dk,
	Array dv, Array dO)
{
	size_t B = m->B, T = m->T, H = m->shape.heads, C = m->shape.d_model,
		D = C / H;
	Type type = m->policy->op[OP_SCORES].output;
	Array dP = temporary(m, B * H * T * T, type, "d attn.softmax");
	const Matmul probabilities_by_rows = {    /* (T, T) times (T, D) */
		.m = T, .n = D, .k = T, .lda = T, .ldb = C, .ldc = C, .alpha = 1,
			.outer = B, .inner = H,
		.step_a = { H * T * T, T * T }, .step_b = { T * C, D },
			.step_c = { T * C, D },
	};
	Matmul transposed = probabilities_by_rows;
	transposed.trans_a = true;
	size_t n = B * T * C, nP = B * H * T * T;
	RANGE(m->device, "values") {
		attention_matmul(m, dv, s->P, nP, dO, n, transposed);
		attention_matmul(m, dP, dO, n, s->v, n, (Matmul){
			.m = T, .n = T, .k = D, .trans_b = true, .lda = C, .ldb = C,
			.ldc = T, .alpha = 1, .outer = B, .inner = H,
			.step_a = { T * C, D }, .step_b = { T * C, D },
			.step_c = { H * T * T, T * T } });
	}
	RANGE(m->device, "softmax")
		m->ops->softmax_backward(m->device, dP, dP, s->P, 1 / sqrt(D), B * H, T);
	RANGE(m->device, "scores") {
		attention_matmul(m, dq, dP, nP, s->k, n, probabilities_by_rows);
		attention_matmul(m, dk, dP, nP, s->q, n, transposed);
	}
	array_drop(m, &dP);
	m->ops->rope(m->device, dq, dq, m->cosine, m->sine, B, T, H, D, -1);
	m->ops->rope(m->device, dk, dk, m->cosine, m->sine, B, T, H, D, -1);
}

static void attention_backward(Model *m, int layer, Array dnorm, Array dx,
	double beta)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	Type type = m->policy->op[OP_LINEAR].output;
	Activations *s = &m->activations[layer];
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
	Activations *s = &m->activations[layer];
	Array dh = temporary(m, N * F, type, "d ffn.swiglu");
	linear_backward(m, dh, 0, dx, s->h, in_block(m, layer, P_W2), beta, N);
	array_drop(m, &s->h);
	Array dup = temporary(m, N * F, type, "d ffn.w3");
	m->ops->swiglu_backward(m->device, dh, dup, dh, s->gate, s->up, N * F);
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
typedef struct Eager {
	Array dx;
	double beta;
} Eager;

static void block_backward(Model *m, int layer, void *gradient)
{
	Array dx = ((const Eager *)gradient)->dx;
	double beta = ((const Eager *)gradient)->beta;
	size_t N = m->B * m->T, C = m->shape.d_model;
	Activations *s = &m->activations[layer];
	int ln1 = in_block(m, layer, P_LN1), ln2 = in_block(m, layer, P_LN2);
	Array dnorm = temporary(m, N * C, TYPE_REAL, "d norm");
	RANGE(m->device, "feed-forward")
		ffn_backward(m, layer, dnorm, dx, beta);
	norm_backward(m, dx, dnorm, s->x_mid, ln2, s->rho2, s->mu2);
	array_drop(m, &s->x_mid);
	RANGE(m->device, "attention")
		attention_backward(m, layer, dnorm, dx, beta);
	norm_backward(m, dx, dnorm, s->x, ln1, s->rho1, s->mu1);
	array_drop(m, &s->x);
	array_drop(m, &dnorm);
}
static void propagate(Model *m, const Blocks *b, int first, int n,
	void *gradient)
{
	Activations *s = &m->activations[first];
	if (n <= m->recompute_blocks) {
		b->forward(m, first, n, s->x, true, false, false);
		for (int layer = first + n - 1; layer >= first; layer--)
			RANGE(m->device, "layer")
				b->backward(m, layer, gradient);
	} else {
		int half = (n + 1) / 2;
		m->activations[first + half].x = b->forward(m, first, half, s->x, false,
			true, true);
		propagate(m, b, first + half, n - half, gradient);
		propagate(m, b, first, half, gradient);
	}
}

void blocks_backward(Model *m, const Blocks *b, void *gradient)
{
	int layers = (int)m->shape.layers, group = m->checkpoint_every;
	if (group == 0) {
		for (int layer = layers - 1; layer >= 0; layer--)
			RANGE(m->device, "layer")
				b->backward(m, layer, gradient);
		return;
	}
	for (int first = (layers - 1) / group * group; first >= 0; first -= group)
		propagate(m, b, first, first + group < layers ? group
			: layers - first, gradient);
}
static void eager_backward(Model *m, double beta)
{
	size_t N = m->B * m->T, C = m->shape.d_model, V = m->shape.vocab;
	int last = shape_nparameters(&m->shape) - 1;
	for (int i = 0; beta == 0 && i <= last; i++)
		if (shape_parameter(&m->shape, i).gain)
			m->ops->fill(m->device, model_gradient(m, i), 0, C);
	m->ops->cross_entropy_backward(m->device, m->logits, m->logits, m->lse, m->targets,
		m->loss_scale / N, N, V);
	Array dnorm = temporary(m, N * C, TYPE_REAL, "d ln_final");
	linear_backward(m, dnorm, 0, m->logits, m->norm, last, beta, N);
	array_drop(m, &m->logits);
	array_drop(m, &m->norm);
	Array dx = temporary(m, N * C, m->policy->op[OP_RESIDUAL].output, "d residual");
	m->ops->fill(m->device, dx, 0, N * C);
	norm_backward(m, dx, dnorm, m->x, last - 1, m->rho, m->mu);
	array_drop(m, &dnorm);
	array_drop(m, &m->x);
	const Blocks eager = { eager_blocks_forward, block_backward };
	blocks_backward(m, &eager, &(Eager){ dx, beta });
	m->ops->embedding_backward(m->device, model_gradient(m, 0), beta, dx, m->tokens, N, C,
		V);
	array_drop(m, &dx);
}

void model_backward(Model *m, bool accumulate)
{
	assert(m->has_activations && m->has_targets
		&& "a forward pass with targets and keep comes first");
	double beta = accumulate && m->gradients.at ? 1 : 0;
	if (m->gradients.at == NULL)
		m->gradients = array_new(m->device, m->count, m->policy->gradient,
			MEM_GRADIENT, "gradients");
	if (m->fused)
		fused_backward(m, beta);
	else
		eager_backward(m, beta);
	model_clear(m);
}
