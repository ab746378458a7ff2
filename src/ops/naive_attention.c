#include "ops/naive_attention.h"

#include "ops/array_as.h"
#include "ops/dispatch.h"

// say how large P is, and how results are stored
static size_t elements_of_P(const Attention *a)
{
	return a->B * a->H * a->seqlen_q * a->seqlen_k;
}

static Type stored_type(Array x)
{
	return x.type == TF32 ? TYPE_REAL : x.type;
}

static Array stored(Array x)
{
	return (Array){ x.at, stored_type(x) };
}

// describe the matmuls of naive attention
/* (queries, D) times (D, keys) for each head */
static Matmul heads_by_heads(const Attention *a, const Heads *x, const Heads *y)
{
	size_t Q = a->seqlen_q, K = a->seqlen_k;
	return (Matmul){ .m = Q, .n = K, .k = a->D, .trans_b = true, .lda = x->row,
		.ldb = y->row, .ldc = K, .alpha = 1, .outer = a->B, .inner = a->H,
		.step_a = { x->batch, x->head }, .step_b = { y->batch, y->head },
		.step_c = { a->H * Q * K, Q * K } };
}

/* (queries, keys), or its transpose, times rows of x; the result: rows of y */
static Matmul matrix_by_heads(const Attention *a, bool transposed,
	const Heads *x, const Heads *y)
{
	size_t Q = a->seqlen_q, K = a->seqlen_k;
	return (Matmul){ .m = transposed ? K : Q, .n = a->D,
		.k = transposed ? Q : K, .trans_a = transposed, .lda = K,
		.ldb = x->row, .ldc = y->row, .alpha = 1, .outer = a->B,
		.inner = a->H, .step_a = { a->H * Q * K, Q * K },
		.step_b = { x->batch, x->head }, .step_c = { y->batch, y->head } };
}

// compute P and P V
/* P as matmuls read it, or what they have to cast */
static Array saved_P(const Attention *a)
{
	return a->P_cast.at ? a->P_cast : a->P;
}

void naive_probabilities(Device *d, const Attention *a, bool fused)
{
	const Ops *ops = ops_for(d);
	Array S = a->P;
	if (stored_type(a->o.x) != a->P.type)
		S = array_new(d, elements_of_P(a), stored_type(a->o.x), MEM_TEMPORARY,
			"scores");
	RANGE(d, "scores")
		ops->matmul(d, S, a->q.x, a->k.x, heads_by_heads(a, &a->q, &a->k));
	RANGE(d, "softmax")
		(fused ? ops->fused_softmax_forward : ops->softmax_forward)(d, a->P, S,
			a->scale, a->B * a->H, a->seqlen_q);
	if (S.at != a->P.at)
		device_free(d, S.at);
}

void naive_values(Device *d, const Attention *a)
{
	if (a->P_cast.at)
		ops_for(d)->cast(d, a->P_cast, a->P, elements_of_P(a));
	Array saved = saved_P(a), P = array_as(d, saved, elements_of_P(a),
		a->q.x.type);
	RANGE(d, "values")
		ops_for(d)->matmul(d, stored(a->o.x), P, a->v.x,
			matrix_by_heads(a, false, &a->v, &a->o));
	array_as_end(d, &P, saved);
}

// propagate through naive attention
/* dv, and dP */
static void gradients_of_values(Device *d, const Attention *a,
	const AttentionGradient *g, Array dP)
{
	Array saved = saved_P(a), P = array_as(d, saved, elements_of_P(a),
		a->q.x.type);
	ops_for(d)->matmul(d, stored(g->dv.x), P, g->d_o.x, matrix_by_heads(a, true,
		&g->d_o, &g->dv));
	array_as_end(d, &P, saved);
	ops_for(d)->matmul(d, dP, g->d_o.x, a->v.x, heads_by_heads(a, &g->d_o,
		&a->v));
}

/* dq and dk */
static void gradients_of_scores(Device *d, const Attention *a,
	const AttentionGradient *g, Array dP)
{
	Array dS = array_as(d, dP, elements_of_P(a), a->q.x.type);
	ops_for(d)->matmul(d, stored(g->dq.x), dS, a->k.x, matrix_by_heads(a, false,
		&a->k, &g->dq));
	ops_for(d)->matmul(d, stored(g->dk.x), dS, a->q.x, matrix_by_heads(a, true,
		&a->q, &g->dk));
	array_as_end(d, &dS, dP);
}

void naive_gradients(Device *d, const Attention *a, const AttentionGradient *g,
	bool fused)
{
	const Ops *ops = ops_for(d);
	Array dP = array_new(d, elements_of_P(a), stored_type(g->dq.x),
		MEM_TEMPORARY, "d attn.softmax");
	RANGE(d, "values")
		gradients_of_values(d, a, g, dP);
	RANGE(d, "softmax")
		(fused ? ops->fused_softmax_backward : ops->softmax_backward)(d, dP, dP,
			a->P, a->scale, a->B * a->H, a->seqlen_q);
	RANGE(d, "scores")
		gradients_of_scores(d, a, g, dP);
	device_free(d, dP.at);
}

// make naive attention an attention kernel
/* do heads of a token lie side by side, and tokens one after the other? */
static bool is_dense(const Attention *a, const Heads *x)
{
	return x->head == a->D && x->row == a->H * a->D
		&& x->batch == a->seqlen_q * x->row;
}

bool naive_attention_supports(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	return a->causal && a->seqlen_q == a->seqlen_k && a->group == 1
		&& a->starts_q == NULL && (g == NULL
		|| g->cosine.at == NULL || (is_dense(a, &g->dq)
		&& is_dense(a, &g->dk)));
}

void naive_attention_forward(Device *d, Attention a)
{
	naive_probabilities(d, &a, false);
	naive_values(d, &a);
}

void naive_attention_backward(Device *d, Attention a, AttentionGradient g)
{
	const Ops *ops = ops_for(d);
	naive_gradients(d, &a, &g, false);
	if (g.cosine.at == NULL)
		return;
	ops->rope(d, g.dq.x, g.dq.x, g.cosine, g.sine, a.B, a.seqlen_q, a.H, a.D,
		-1);
	ops->rope(d, g.dk.x, g.dk.x, g.cosine, g.sine, a.B, a.seqlen_q, a.H, a.D,
		-1);
}

size_t naive_attention_scratch(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	size_t (*width)(Type type) = d->backend->width;
	return elements_of_P(a) * (width(TYPE_REAL) + (g
		? width(stored_type(g->dq.x)) : 0));
}
