#include "model/path.h"

#include "model/attention.h"
#include "model/buffers.h"
#include "model/fp8.h"
#include "model/head.h"
#include "model/linear.h"
#include "model/parameters.h"
#include "model/rank_rows.h"
#include "model/recompute.h"

/* the residual stream as two summands. N counts the tokens of the batch; of the
 * stream, and of the rows of the branch that count, a rank has own_tokens */
typedef struct Stream {
	Array *x;            /* the sum so far; points into the model */
	Array branch;        /* (N, C), still to be added; at is NULL: none */
	int last;            /* the block whose last branch is not run; -1: none */
} Stream;

// add the branch to the stream and normalise
/* the place of the model in which a norm's output is saved; NULL: it is not */
static Array *norm_place(const Model *m, Array *place, bool keep)
{
	return keep && m->group && m->group->keep_norms ? place : NULL;
}

/* sum: set to stream plus branch, which becomes the stream. rho: set to the
 * norm's factors. saved: where the result is kept, or NULL. Returns the norm
 * (N, C) */
static Array add_and_normalise(Model *m, Stream *s, Array *sum, Array *rho,
	int gain, bool keep, Array *saved)
{
	size_t own = own_tokens(m), C = m->shape.d_model, n = m->B * m->T * C;
	Array y = saved ? activation(m, n, OP_LINEAR, "norm") : temporary(m, n,
		m->policy->op[OP_LINEAR].output, "norm");
	if (saved)
		*saved = y;
	*rho = statistic(m, own, "norm's factor");
	*sum = *s->x;
	if (s->branch.at)
		*sum = activation(m, own * C, OP_RESIDUAL, "residual");
	RANGE(m->device, "norm")
		m->ops->fused_rmsnorm_forward(m->device, (NormForward){
			.y = own_rows(m, y), .rho = *rho, .sum = *sum, .x = *s->x,
			.branch = own_rows(m, s->branch), .g = model_weight(m, gain),
			.eps = NORM_EPS }, own, C);
	gather_rows(m, y, "norm");
	if (s->branch.at == NULL)
		s->x->at = NULL;                    /* it has moved to sum */
	else if (!keep)
		array_drop(m, s->x);
	array_drop(m, &s->branch);
	s->x = sum;
	return y;
}

// run a block of the fused path forward
static Array through_w2_in_fp8(Model *m, Activations *s, ParamSpan w2, bool keep)
{
	size_t N = m->B * m->T;
	Array branch = temporary(m, N * m->shape.d_model,
		m->policy->op[OP_LINEAR].output, "ffn.w2");
	if (!keep)
		fp8_keep(m, false);
	fp8_forward(m, branch, (Fp8Input){ .source = FP8_SWIGLU,
		.ab = s->gate_up }, m->params[w2.first].compute, w2, N);
	if (!keep)
		array_drop(m, &s->gate_up);
	return branch;
}

static Array through_w2(Model *m, Activations *s, int first, bool keep)
{
	size_t N = m->B * m->T, C = m->shape.d_model, F = m->shape.d_ff;
	if (m->fp8)
		return through_w2_in_fp8(m, s, (ParamSpan){ first + P_W2, 1 }, keep);
	Array h = temporary(m, N * F, m->policy->op[OP_SWIGLU].output, "ffn.swiglu");
	RANGE(m->device, "swiglu")
		m->ops->fused_swiglu_forward(m->device, h, s->gate_up, N, F);
	if (!keep)
		array_drop(m, &s->gate_up);
	Array branch = temporary(m, N * C, m->policy->op[OP_LINEAR].output, "ffn.w2");
	linear_forward(m, branch, h, (ParamSpan){ first + P_W2, 1 }, N);
	scatter_sums(m, branch, "ffn.w2");
	array_drop(m, &h);
	return branch;
}

// run both halves of a block
static void run_block(Model *m, int layer, Stream *stream, bool keep,
	bool save_input, bool keep_scores)
{
	size_t N = m->B * m->T, C = m->shape.d_model, F = m->shape.d_ff,
		A = m->shape.heads * m->shape.d_head;
	Activations *s = &m->activations[layer];
	Type type = m->policy->op[OP_LINEAR].output;
	int first = in_block(m, layer, P_LN1);
	fp8_keep(m, keep && layer >= m->plan.drop_codes);
	Array *place = norm_place(m, &s->norm1, keep), norm = add_and_normalise(m,
		stream, &s->x, &s->rho1, first, keep, place);
	// project, attend, project back
	RANGE(m->device, "attention") {
		s->qkv = activation(m, 3 * N * A, OP_LINEAR, "attn.qkv");
		linear_forward(m, s->qkv, norm, (ParamSpan){ first + P_Q, 3 }, N);
		if (!place)
			array_drop(m, &norm);
		fused_attention_rotate(m, s->qkv, 1);
		fused_attention_forward(m, s);
		stream->branch = temporary(m, N * C, type, "attn.output");
		linear_forward(m, stream->branch, s->o,
			(ParamSpan){ first + P_OUTPUT, 1 }, N);
		scatter_sums(m, stream->branch, "attn.output");
	}
	if (!keep_scores)
		array_drop(m, &s->P);
	// drop what attention saved, unless it is kept
	if (!keep) {
		array_drop(m, &s->qkv);
		array_drop(m, &s->o);
		array_drop(m, &s->L);
		array_drop(m, &s->rho1);
	}
	if (layer < m->plan.drop_qkv)
		array_drop(m, &s->qkv);
	place = norm_place(m, &s->norm2, keep);
	norm = add_and_normalise(m, stream, &s->x_mid, &s->rho2, first + P_LN2,
		keep || save_input, place);
	// apply gate and up, and go through W2
	RANGE(m->device, "feed-forward") {
		s->gate_up = activation(m, 2 * N * F, OP_LINEAR, "ffn.w1 and w3");
		linear_forward(m, s->gate_up, norm, (ParamSpan){ first + P_W1, 2 }, N);
		if (!place)
			array_drop(m, &norm);
		if (layer != stream->last)
			stream->branch = through_w2(m, s, first,
				keep && layer >= m->plan.drop_gate_up);
	}
	if (!keep)
		array_drop(m, &s->rho2);
}

// run a block of the fused path in its range
static void block_forward(Model *m, int layer, Stream *stream, bool keep,
	bool save_input, bool keep_scores)
{
	enter_unit(m, 1 + layer, false);
	RANGE(m->device, "layer")
		run_block(m, layer, stream, keep, save_input, keep_scores);
	leave_unit(m, 1 + layer, false);
}

// run the fused path forward
static void fused_forward(Model *m, bool keep)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	int last = shape_nparameters(&m->shape) - 1,
		head = shape_nunits(&m->shape) - 1;
	bool whole = keep && m->checkpoint_every == 0, scores = whole && !m->flash
		&& !m->plan.drop_scores;
	enter_unit(m, 0, false);
	Array embedded = activation(m, N * C, OP_EMBEDDING, "embedding");
	RANGE(m->device, "embedding")
		m->ops->embedding_forward(m->device, embedded, model_weight(m, 0),
			m->tokens, N, C);
	embedded = keep_own_sums(m, embedded);
	leave_unit(m, 0, false);
	Stream s = { &embedded, { NULL, FP32 }, -1 };
	for (int layer = 0; layer < m->shape.layers; layer++)
		block_forward(m, layer, &s, whole, saves_input(m, keep, layer), scores);
	enter_unit(m, head, false);
	Array *place = norm_place(m, &m->norm, keep && !head_in_chunks(m)),
		norm = add_and_normalise(m, &s, &m->x, &m->rho, last - 1, whole, place);
	head_forward(m, &norm, keep);
	leave_unit(m, head, false);
}

// make again what a block has dropped
static Array norm_again(Model *m, Array sum, int gain)
{
	size_t own = own_tokens(m), C = m->shape.d_model;
	Array y = activation(m, m->B * m->T * C, OP_LINEAR, "norm");
	RANGE(m->device, "norm")
		m->ops->fused_rmsnorm_forward(m->device, (NormForward){
			.y = own_rows(m, y), .rho = { NULL, TYPE_REAL }, .x = sum,
			.branch = { NULL, y.type }, .g = model_weight(m, gain),
			.eps = NORM_EPS }, own, C);
	gather_rows(m, y, "norm");
	return y;
}

/* the result (B*T, width) of a linear layer on a norm's output; if norm->at
 * is NULL the norm is computed again first, and stays in *norm */
static Array linear_again(Model *m, Array *norm, Array sum, int gain,
	ParamSpan weights, size_t width, const char *name)
{
	size_t N = m->B * m->T;
	if (norm->at == NULL)
		*norm = norm_again(m, sum, gain);
	Array y = activation(m, N * width, OP_LINEAR, name);
	fp8_keep(m, true);
	linear_forward(m, y, *norm, weights, N);
	return y;
}

static void gate_up_again(Model *m, Activations *s, int first)
{
	if (s->gate_up.at == NULL)
		s->gate_up = linear_again(m, &s->norm2, s->x_mid, first + P_LN2,
			(ParamSpan){ first + P_W1, 2 }, 2 * m->shape.d_ff,
			"ffn.w1 and w3");
}

static void qkv_again(Model *m, Activations *s, int first)
{
	if (s->qkv.at)
		return;
	s->qkv = linear_again(m, &s->norm1, s->x, first + P_LN1,
		(ParamSpan){ first + P_Q, 3 }, 3 * m->shape.heads * m->shape.d_head,
		"attn.qkv");
	fused_attention_rotate(m, s->qkv, 1);
}

// propagate through a block of the fused path
typedef struct Gradient {
	/* gradient of the stream: dx, of own tokens (own_tokens, C), in the
	 * stream's format; dx_low, the same in the format of matmuls, which may
	 * be the same array as dx; dx_all, of all tokens (N, C), of which dx_low
	 * is the own rows */
	Array dx, dx_low;
	Array dx_all;
	double beta;
} Gradient;

// add a gain's gradient of a group
static void add_gain(Model *m, Array addend, int gain, double beta)
{
	if (m->group == NULL)
		return;
	join_group(m, SLOT_GAIN);
	take_gradient(m, gain, &addend, beta);
}

// propagate through a norm, beside collectives
/* propagates from dnorm (N, C) through a norm to the stream, beside a
 * group's collectives. sum, rho: the norm's input and factors. gather: dnorm
 * becomes the norm's output of all tokens. Returns the gain's gradient, or
 * this rank's addend */
static Array norm_backward_overlapped(Model *m, Gradient g, Array dnorm,
	Array sum,
	Array rho, int gain, bool gather)
{
	Array copy = g.dx_low, dy = own_rows(m, dnorm), dg = model_gradient(m,
		gain);
	bool more = gain != in_block(m, 0, P_LN1),
		fresh = gain == shape_nparameters(&m->shape) - 2;
	size_t C = m->shape.d_model;
	if (copy.at == g.dx.at)
		copy.at = NULL;
	if (m->group)
		dg = temporary(m, C, TYPE_REAL, "addend of a gain");
	// wait for the sums, and propagate through the norm
	join_group(m, SLOT_NORM);
	RANGE(m->device, "norm")
		m->ops->fused_rmsnorm_backward(m->device, (NormBackward){
			.dsum = g.dx, .fresh = fresh, .copy = copy, .dg = dg,
			.beta = m->group ? 0 : g.beta, .dy = dy, .sum = sum,
			.y = { gather ? dy.at : NULL, dy.type },
			.g = model_weight(m, gain), .rho = rho,
		}, own_tokens(m), C);
	// start the collectives after a norm
	if (gather)
		start_gather(m, dnorm, "norm", SLOT_NORM);
	if (more)
		start_gather(m, g.dx_all, "d residual", SLOT_STREAM);
	if (m->group)
		m->group->start(m->group->self, &(GroupOp){ GROUP_REDUCE, dg, C, "gain" },
			SLOT_GAIN);
	else
		announce_gradients(m, gain, 1);
	if (gather)
		join_group(m, SLOT_NORM);
	return dg;
}

// propagate through a norm, beside collectives
/* the gradient of the weights, by a matmul that runs beside the group's
 * collectives and leaves them some multiprocessors */
static void weight_gradient_overlapped(Model *m, Array dY, Array X, ParamSpan W,
	double beta)
{
	Device *d = m->device;
	int spare = d->spare_sms;
	if (m->group && m->group->spare_sms > spare)
		d->spare_sms = m->group->spare_sms;
	linear_backward_weight(m, dY, X, W, beta, m->B * m->T);
	d->spare_sms = spare;
}

// propagate through both ends of a half
/* a half of a block, from a norm to what is added to the stream */
typedef struct Half {
	Array *norm;         /* the norm's output; at NULL: it is made again */
	Array sum, rho;      /* the norm's input and factors */
	int gain;
	ParamSpan in, out;   /* the weights behind the norm; those of the branch */
} Half;

/* the gradient (N, width) of what W_out multiplies */
static Array through_output(Model *m, Gradient g, const Half *half, size_t width,
	Type type, const char *what)
{
	size_t N = m->B * m->T;
	Array dh = temporary(m, N * width, type, what);
	join_group(m, SLOT_STREAM);
	linear_backward_input(m, dh, 0, g.dx_all, half->out, N);
	return dh;
}

/* from da, the gradient of W_in's output, to dnorm (N, C); finds the gradient of
 * W_out, and frees h */
static void through_matmuls(Model *m, Gradient g, const Half *half, Array da,
	Array *h, Array dnorm)
{
	linear_backward_input(m, dnorm, 0, da, half->in, m->B * m->T);
	start_scatter(m, dnorm, "d norm", SLOT_NORM);
	weight_gradient_overlapped(m, g.dx_all, *h, half->out, g.beta);
	array_drop(m, h);
}

/* the same from dh (N, F), through SwiGLU's gradient, which with its result is
 * in FP8 alone */
static void gate_in_fp8(Model *m, Gradient g, const Half *half, Array gate_up,
	Array *dh, Array dnorm)
{
	size_t N = m->B * m->T;
	fp8_backward_input(m, dnorm, 0, (Fp8Input){ *dh, FP8_SWIGLU_GRADIENT,
		gate_up }, half->in, N);
	fp8_weight_gradient(m, model_gradient(m, half->out.first),
		(Fp8Input){ g.dx_all }, (Fp8Input){ .source = FP8_SWIGLU,
			.ab = gate_up }, half->out, g.beta, N);
	announce_gradients(m, half->out.first, half->out.count);
	array_drop(m, dh);
}

/* from dnorm to the stream; finds the gradients of the gain and of W_in */
static void through_norm(Model *m, Gradient g, const Half *half, Array da,
	Array dnorm)
{
	Array dgain = norm_backward_overlapped(m, g, dnorm, half->sum, half->rho,
		half->gain, !half->norm->at && !fp8_kept(m, half->in));
	weight_gradient_overlapped(m, da, half->norm->at ? *half->norm : dnorm,
		half->in, g.beta);
	array_drop(m, half->norm);
	add_gain(m, dgain, half->gain, g.beta);
}

static void block_backward(Model *m, int layer, void *gradient)
{
	const Gradient g = *(const Gradient *)gradient;
	size_t N = m->B * m->T, C = m->shape.d_model, F = m->shape.d_ff,
		A = m->shape.heads * m->shape.d_head;
	const Policy *policy = m->policy;
	Activations *s = &m->activations[layer];
	int first = in_block(m, layer, P_LN1);
	const Half ffn = { &s->norm2, s->x_mid, s->rho2, first + P_LN2,
		{ first + P_W1, 2 }, { first + P_W2, 1 } }, attention = { &s->norm1,
		s->x, s->rho1, first + P_LN1, { first + P_Q, 3 },
		{ first + P_OUTPUT, 1 } };
	Array dnorm = temporary(m, N * C, policy->op[OP_LINEAR].output, "d norm");
	RANGE(m->device, "feed-forward") {
		// propagate through the feed-forward half
		gate_up_again(m, s, first);
		Array h = through_output(m, g, &ffn, F, policy->op[OP_SWIGLU].output,
			"d ffn.swiglu");
		if (m->fp8)
			gate_in_fp8(m, g, &ffn, s->gate_up, &h, dnorm);
		else {
			RANGE(m->device, "swiglu")
				m->ops->fused_swiglu_backward(m->device, s->gate_up, h, h, s->gate_up,
					N, F);
			through_matmuls(m, g, &ffn, s->gate_up, &h, dnorm);
		}
		through_norm(m, g, &ffn, s->gate_up, dnorm);
		array_drop(m, &s->gate_up);
		array_drop(m, &s->x_mid);
	}
	RANGE(m->device, "attention") {
		// propagate through the attention half
		Array dO = through_output(m, g, &attention, A, policy->op[OP_VALUES].output,
			"d attn.values");
		qkv_again(m, s, first);
		Array dqkv = fused_attention_backward(m, s, dO);
		array_drop(m, &dO);
		array_drop(m, &s->qkv);
		through_matmuls(m, g, &attention, dqkv, &s->o, dnorm);
		through_norm(m, g, &attention, dqkv, dnorm);
		array_drop(m, &dqkv);
		array_drop(m, &s->x);
	}
	array_drop(m, &dnorm);
}

// hold the gradient of the stream
static Gradient new_gradient(Model *m, double beta)
{
	size_t C = m->shape.d_model, n = m->B * m->T * C;
	Type wide = m->policy->op[OP_RESIDUAL].output,
		type = m->policy->op[OP_LINEAR].output;
	Gradient g = { .beta = beta };
	if (wide != type)
		g.dx = temporary(m, own_tokens(m) * C, wide, "d residual");
	g.dx_all = temporary(m, n, type, wide == type ? "d residual"
		: "d residual, low");
	g.dx_low = own_rows(m, g.dx_all);
	if (wide == type)
		g.dx = g.dx_low;
	return g;
}

/* returns the gradient of all tokens, in full precision; frees everything else */
static Array whole_gradient(Model *m, Gradient *g)
{
	size_t C = m->shape.d_model;
	Array dx = g->dx_all;
	if (g->dx.at != g->dx_low.at) {
		array_drop(m, &g->dx_all);
		dx = g->dx;
		if (m->group) {
			dx = temporary(m, m->B * m->T * C, dx.type, "d residual");
			m->ops->cast(m->device, own_rows(m, dx), g->dx, own_tokens(m) * C);
			array_drop(m, &g->dx);
		}
	}
	gather_rows(m, dx, "d residual");
	return dx;
}

static Array blocks_forward(Model *m, int first, int n, Array x, bool keep,
	bool save_input, bool output)
{
	size_t count = own_tokens(m) * m->shape.d_model;
	Stream s = { &x, { NULL, FP32 }, output ? -1 : first + n - 1 };
	bool scores = keep && !m->flash && !m->plan.drop_scores;
	for (int layer = first; layer < first + n; layer++)
		block_forward(m, layer, &s, keep, save_input && layer == first, scores);
	Array sum = { NULL, FP32 };
	if (output) {
		sum = activation(m, count, OP_RESIDUAL, "residual");
		m->ops->add(m->device, sum, *s.x, own_rows(m, s.branch), count);
	}
	if (!keep)
		array_drop(m, s.x);
	array_drop(m, &s.branch);
	return sum;
}

// propagate through the fused path
static void fused_backward(Model *m, double beta)
{
	size_t N = m->B * m->T, C = m->shape.d_model;
	int last = shape_nparameters(&m->shape) - 1,
		head = shape_nunits(&m->shape) - 1;
	enter_unit(m, head, true);
	// propagate through the head of the fused path
	ParamSpan weights = { last, 1 };
	bool done = head_in_chunks(m), again = !done && !m->norm.at;
	Array dnorm = m->dnorm;
	if (!done) {
		dnorm = temporary(m, N * C, m->policy->op[OP_LINEAR].output, "d norm");
		linear_backward_input(m, dnorm, 0, m->logits, weights, N);
	}
	Gradient g = new_gradient(m, beta);
	start_scatter(m, dnorm, "d norm", SLOT_NORM);
	Array dgain = norm_backward_overlapped(m, g, dnorm, m->x, m->rho, last - 1,
		again);
	if (done)
		head_gradient(m, beta);
	else
		weight_gradient_overlapped(m, m->logits, again ? dnorm : m->norm, weights,
			beta);
	add_gain(m, dgain, last - 1, beta);
	array_drop(m, &dnorm);
	m->dnorm.at = NULL;
	array_drop(m, &m->norm);
	array_drop(m, &m->logits);
	array_drop(m, &m->x);
	leave_unit(m, head, true);
	const Blocks fused = { blocks_forward, block_backward };
	blocks_backward(m, &fused, &g);
	enter_unit(m, 0, true);
	Array dx = whole_gradient(m, &g);
	RANGE(m->device, "embedding")
		m->ops->embedding_backward(m->device, model_gradient(m, 0), beta, dx,
			m->tokens, N, C, m->shape.vocab);
	announce_gradients(m, 0, 1);
	leave_unit(m, 0, true);
	array_drop(m, &dx);
}

const Path fused_path = { fused_forward, fused_backward };
