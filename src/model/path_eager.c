#include "model/path.h"

#include <math.h>

#include "model/buffers.h"
#include "model/head.h"
#include "model/linear.h"
#include "model/parameters.h"
#include "model/recompute.h"
#include "ops/naive_attention.h"

// drop a tensor unless it is kept
static void drop_unless_kept(Model *m, bool keep, Array *a)
{
	if (!keep)
		array_drop(m, a);
}

/* leaves n elements x as matmuls of this kind read them */
static void save_cast(Model *m, Array *x, size_t n, OpKind reader,
	const char *what)
{
	Type type = m->policy->op[reader].input;
	Array wide = *x;
	if (m->ops->reads(m->device, wide.type, type))
		return;
	*x = array_new(m->device, n, type, MEM_ACTIVATION, what);
	m->ops->cast(m->device, *x, wide, n);
	array_drop(m, &wide);
}

// compute attention
static Heads heads_of(const Model *m, Array x)
{
	size_t D = m->shape.d_head, A = m->shape.heads * D;
	return (Heads){ x, m->T * A, A, D };
}

static Heads cast_heads(Model *m, Array x)
{
	size_t n = m->B * m->T * m->shape.heads * m->shape.d_head;
	return heads_of(m, cast_if_needed(m, x, n, m->policy->op[OP_SCORES].input));
}

/* attention of a block; release_attention frees what is cast for it */
static Attention take_attention(Model *m, const Activations *s)
{
	size_t T = m->T, D = m->shape.d_head;
	return (Attention){ .B = m->B, .H = m->shape.heads, .seqlen_q = T,
		.seqlen_k = T, .D = D, .group = 1, .scale = 1 / sqrt(D), .causal = true,
		.q = cast_heads(m, s->q), .k = cast_heads(m, s->k),
		.v = cast_heads(m, s->v), .o = heads_of(m, s->o), .P = s->P,
		.P_cast = s->P_cast };
}

static void release_attention(Model *m, Attention *a, const Activations *s)
{
	release_cast(m, &a->v.x, s->v);
	release_cast(m, &a->k.x, s->k);
	release_cast(m, &a->q.x, s->q);
}

static void rotate(Model *m, Array *x, const char *what)
{
	size_t B = m->B, T = m->T, H = m->shape.heads, D = m->shape.d_head;
	Array from = *x;
	if (m->policy->op[OP_ROPE].output != from.type)
		*x = activation(m, B * T * H * D, OP_ROPE, what);
	m->ops->rope(m->device, *x, from, m->cosine, m->sine, B, T, H, D, 1);
	release_cast(m, &from, *x);
	save_cast(m, x, B * T * H * D, OP_SCORES, what);
}

static void attention_forward(Model *m, int layer, Activations *s, bool keep)
{
	size_t H = m->shape.heads, N = m->B * m->T, A = H * m->shape.d_head;
	Array *const projections[3] = { &s->q, &s->k, &s->v };
	static const char *const names[3] = { "attn.q", "attn.k", "attn.v" };
	for (int i = 0; i < 3; i++) {
		*projections[i] = activation(m, N * A, OP_LINEAR, names[i]);
		linear_forward(m, *projections[i], s->norm1,
			(ParamSpan){ in_block(m, layer, P_Q + i), 1 }, N);
	}
	drop_unless_kept(m, keep, &s->norm1);
	for (int i = 0; i < 2; i++)
		rotate(m, projections[i], names[i]);
	s->P = activation(m, N * H * m->T, OP_SOFTMAX, "attn.softmax");
	s->o = (Array){ NULL, m->policy->op[OP_VALUES].output };
	Attention a = take_attention(m, s);
	naive_probabilities(m->device, &a, false);
	if (!m->ops->reads(m->device, s->P.type, a.q.x.type))
		a.P_cast = s->P_cast = array_new(m->device, N * H * m->T, a.q.x.type,
			MEM_ACTIVATION, "attn.softmax, cast");
	a.o.x = s->o = activation(m, N * A, OP_VALUES, "attn.values");
	naive_values(m->device, &a);
	release_attention(m, &a, s);
	for (int i = 0; i < 3; i++)
		drop_unless_kept(m, keep, projections[i]);
	drop_unless_kept(m, keep, &s->P);
	drop_unless_kept(m, keep, &s->P_cast);
}

// run one block forward
static void normalise(Model *m, Array *y, Array *rho, Array *mu, Array x,
	int gain, const char *what)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	Array g = model_weight(m, gain);
	*rho = statistic(m, N, what);
	*y = activation(m, N * C, OP_NORM, what);
	if (m->layernorm)
		*mu = statistic(m, N, what);
	RANGE(m->device, "norm") {
		if (m->layernorm)
			m->ops->layernorm_forward(m->device, *y, *mu, *rho, x, g,
				(Array){ NULL, FP32 }, N, C, NORM_EPS);
		else
			m->ops->rmsnorm_forward(m->device, *y, *rho, x, g, N, C, NORM_EPS);
	}
	save_cast(m, y, N * C, OP_LINEAR, what);
}

static Array add_residual(Model *m, Array x, Array branch, size_t n,
	const char *what)
{
	Array sum = activation(m, n, OP_RESIDUAL, what);
	m->ops->add(m->device, sum, x, branch, n);
	return sum;
}

/* X W^T of a layer whose output has d_model columns */
static Array linear_branch(Model *m, Array X, int parameter, const char *what)
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
	// normalise, attend, add to the residual stream
	normalise(m, &s->norm1, &s->rho1, &s->mu1, s->x, in_block(m, layer, P_LN1),
		"ln1");
	Array branch = { NULL, FP32 };
	RANGE(m->device, "attention") {
		attention_forward(m, layer, s, keep);
		branch = linear_branch(m, s->o, in_block(m, layer, P_OUTPUT),
			"attn.output");
		drop_unless_kept(m, keep, &s->o);
	}
	s->x_mid = add_residual(m, s->x, branch, N * C, "residual after attention");
	array_drop(m, &branch);
	drop_unless_kept(m, keep || save_input, &s->x);
	drop_unless_kept(m, keep, &s->rho1);
	drop_unless_kept(m, keep, &s->mu1);
	// normalise, gate, add to the residual stream
	normalise(m, &s->norm2, &s->rho2, &s->mu2, s->x_mid,
		in_block(m, layer, P_LN2), "ln2");
	RANGE(m->device, "feed-forward") {
		s->gate = activation(m, N * F, OP_LINEAR, "ffn.w1");
		s->up = activation(m, N * F, OP_LINEAR, "ffn.w3");
		linear_forward(m, s->gate, s->norm2,
			(ParamSpan){ in_block(m, layer, P_W1), 1 }, N);
		linear_forward(m, s->up, s->norm2,
			(ParamSpan){ in_block(m, layer, P_W3), 1 }, N);
		drop_unless_kept(m, keep, &s->norm2);
		s->h = activation(m, N * F, OP_SWIGLU, "ffn.swiglu");
		m->ops->swiglu_forward(m->device, s->h, s->gate, s->up, N * F);
		drop_unless_kept(m, keep, &s->gate);
		drop_unless_kept(m, keep, &s->up);
		branch = linear_branch(m, s->h, in_block(m, layer, P_W2), "ffn.w2");
		drop_unless_kept(m, keep, &s->h);
	}
	Array out = add_residual(m, s->x_mid, branch, N * C, "residual after ffn");
	array_drop(m, &branch);
	drop_unless_kept(m, keep, &s->x_mid);
	drop_unless_kept(m, keep, &s->rho2);
	drop_unless_kept(m, keep, &s->mu2);
	return out;
}

// run one block forward
static Array blocks_forward(Model *m, int first, int n, Array x, bool keep,
	bool save_input, bool output)
{
	for (int layer = first; layer < first + n; layer++) {
		enter_unit(m, 1 + layer, false);
		RANGE(m->device, "layer")
			x = block_forward(m, layer, x, keep, save_input && layer == first);
		leave_unit(m, 1 + layer, false);
	}
	if (!output)
		array_drop(m, &x);
	return x;
}

// drop the casts of weights
/* at the end of the region: drops casts that the backward pass does not read */
static void end_casts(Model *m, bool keep)
{
	int n = shape_nparameters(&m->shape), head = n - 1;
	if (!keep || m->checkpoint_every > 0)
		linear_drop_casts(m, 0, head);
	if (!keep || head_in_chunks(m))
		linear_drop_casts(m, head, 1);
}

// run the eager path forward
static void eager_forward(Model *m, bool keep)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	bool whole = keep && m->checkpoint_every == 0;
	enter_unit(m, 0, false);
	m->x = activation(m, N * C, OP_EMBEDDING, "embedding");
	m->ops->embedding_forward(m->device, m->x, model_weight(m, 0), m->tokens, N,
		C);
	leave_unit(m, 0, false);
	for (int layer = 0; layer < m->shape.layers; layer++)
		m->x = blocks_forward(m, layer, 1, m->x, whole,
			saves_input(m, keep, layer), true);
	int head = shape_nunits(&m->shape) - 1;
	enter_unit(m, head, false);
	// normalise, project to logits, compute the losses
	int last = shape_nparameters(&m->shape) - 1;
	normalise(m, &m->norm, &m->rho, &m->mu, m->x, last - 1, "ln_final");
	head_forward(m, &m->norm, keep);
	leave_unit(m, head, false);
	end_casts(m, keep);
}

// propagate through a linear layer or a norm
static void linear_backward(Model *m, Array dX, double beta, Array dY, Array X,
	int parameter, double beta_w, size_t N)
{
	ParamSpan W = { parameter, 1 };
	size_t rows = m->params[parameter].about.rows;
	Array dy = cast_if_needed(m, dY, N * rows, m->policy->op[OP_LINEAR].input);
	linear_backward_input(m, dX, beta, dy, W, N);
	linear_drop_casts(m, parameter, 1);
	linear_backward_weight(m, dy, X, W, beta_w, N);
	release_cast(m, &dy, dY);
}

static void norm_backward(Model *m, Array dx, Array dy, Array x, int gain,
	double beta, Array rho, Array mu)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	Array dg = model_gradient(m, gain), g = model_weight(m, gain);
	if (beta == 0)
		m->ops->fill(m->device, dg, 0, C);
	RANGE(m->device, "norm") {
		if (m->layernorm)
			m->ops->layernorm_backward(m->device, dx, dg, (Array){ NULL, FP32 },
				dy, x, g, mu, rho, N, C);
		else
			m->ops->rmsnorm_backward(m->device, dx, dg, dy, x, g, rho, N, C);
	}
	announce_gradients(m, gain, 1);
}

// propagate through attention
static void heads_backward(Model *m, Activations *s, const Array d[3], Array dO)
{
	Attention a = take_attention(m, s);
	AttentionGradient g = { .d_o = cast_heads(m, dO), .dq = heads_of(m, d[0]),
		.dk = heads_of(m, d[1]), .dv = heads_of(m, d[2]),
		.cosine = m->cosine, .sine = m->sine };
	naive_attention_backward(m->device, a, g);
	release_cast(m, &g.d_o.x, dO);
	release_attention(m, &a, s);
}

static void attention_backward(Model *m, int layer, Array dnorm, Array dx,
	double beta)
{
	size_t N = m->B * m->T, A = m->shape.heads * m->shape.d_head;
	Type type = m->policy->op[OP_LINEAR].output;
	Activations *s = &m->activations[layer];
	Array dO = temporary(m, N * A, m->policy->op[OP_VALUES].output,
		"d attn.values");
	linear_backward(m, dO, 0, dx, s->o, in_block(m, layer, P_OUTPUT), beta, N);
	array_drop(m, &s->o);
	static const char *const names[3] = { "d attn.q", "d attn.k", "d attn.v" };
	Array d[3];
	for (int i = 0; i < 3; i++)
		d[i] = temporary(m, N * A, type, names[i]);
	heads_backward(m, s, d, dO);
	array_drop(m, &dO);
	array_drop(m, &s->P);
	array_drop(m, &s->P_cast);
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

// propagate through the feed-forward layer
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

// propagate through one block
static Array blocks_again(Model *m, int first, int n, Array x, bool keep,
	bool save_input, bool output)
{
	x = blocks_forward(m, first, n, x, keep, save_input, output);
	if (!keep)
		linear_drop_casts(m, in_block(m, first, P_LN1), n * NBLOCK);
	return x;
}

typedef struct EagerGradient {
	Array dx;
	double beta;
} EagerGradient;

static void block_backward(Model *m, int layer, void *gradient)
{
	Array dx = ((const EagerGradient *)gradient)->dx;
	double beta = ((const EagerGradient *)gradient)->beta;
	size_t N = m->B * m->T, C = m->shape.d_model;
	Activations *s = &m->activations[layer];
	int ln1 = in_block(m, layer, P_LN1), ln2 = in_block(m, layer, P_LN2);
	Array dnorm = temporary(m, N * C, TYPE_REAL, "d norm");
	RANGE(m->device, "feed-forward")
		ffn_backward(m, layer, dnorm, dx, beta);
	norm_backward(m, dx, dnorm, s->x_mid, ln2, beta, s->rho2, s->mu2);
	array_drop(m, &s->x_mid);
	RANGE(m->device, "attention")
		attention_backward(m, layer, dnorm, dx, beta);
	norm_backward(m, dx, dnorm, s->x, ln1, beta, s->rho1, s->mu1);
	array_drop(m, &s->x);
	array_drop(m, &dnorm);
}

// run the eager path backward
static void eager_backward(Model *m, double beta)
{
	size_t N = m->B * m->T, C = m->shape.d_model, V = m->shape.vocab;
	int last = shape_nparameters(&m->shape) - 1,
		head = shape_nunits(&m->shape) - 1;
	enter_unit(m, head, true);
	// propagate through the loss, the head and the final norm
	Array dnorm = m->dnorm;
	if (head_in_chunks(m)) {
		head_gradient(m, beta);
	} else {
		m->ops->cross_entropy_backward(m->device, m->logits, m->logits, m->lse,
			m->targets, m->loss_scale * m->share / N, N, V);
		dnorm = temporary(m, N * C, TYPE_REAL, "d ln_final");
		linear_backward(m, dnorm, 0, m->logits, m->norm, last, beta, N);
		array_drop(m, &m->logits);
		array_drop(m, &m->norm);
	}
	Array dx = temporary(m, N * C, m->policy->op[OP_RESIDUAL].output, "d residual");
	m->ops->fill(m->device, dx, 0, N * C);
	norm_backward(m, dx, dnorm, m->x, last - 1, beta, m->rho, m->mu);
	array_drop(m, &dnorm);
	m->dnorm.at = NULL;
	array_drop(m, &m->x);
	leave_unit(m, head, true);
	const Blocks eager = { blocks_again, block_backward };
	blocks_backward(m, &eager, &(EagerGradient){ dx, beta });
	enter_unit(m, 0, true);
	m->ops->embedding_backward(m->device, model_gradient(m, 0), beta, dx,
		m->tokens, N, C, V);
	announce_gradients(m, 0, 1);
	leave_unit(m, 0, true);
	array_drop(m, &dx);
}

const Path eager_path = { eager_forward, eager_backward };
