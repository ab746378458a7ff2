#include "model/head.h"

#include "model/buffers.h"
#include "model/linear.h"
#include "model/parameters.h"
#include "model/rank_rows.h"

// find the losses of some tokens and, if it is wanted, the gradient of their logits
static void new_losses(Model *m)
{
	size_t N = m->B * m->T;
	m->losses = activation(m, N, OP_LOSS, "losses");
	if (!m->fused)
		m->lse = activation(m, N, OP_LOSS, "logsumexp");
}

/* finds the losses of n tokens from `first` on with logits z; gradient: z
 * becomes the gradient of the logits */
static void head_losses(Model *m, Array z, bool gradient, size_t first,
	size_t n)
{
	double scale = m->loss_scale * m->share / (m->B * m->T);
	const int32_t *targets = m->targets + first;
	Array losses = array_part(m->device, m->losses, first),
		dz = { gradient ? z.at : NULL, z.type };
	size_t V = m->shape.vocab;
	if (m->group) {
		RANGE(m->device, "loss")
			loss_of_group(m, losses, dz, z, targets, scale, n);
	} else if (m->fused) {
		RANGE(m->device, "loss")
			m->ops->fused_cross_entropy(m->device, losses, dz, z, targets, scale,
				n, V);
	} else {
		Array lse = array_part(m->device, m->lse, first);
		m->ops->cross_entropy_forward(m->device, losses, lse, z, targets, n, V);
		if (gradient)
			m->ops->cross_entropy_backward(m->device, z, z, lse, targets, scale,
				n, V);
	}
}

// go through the head by chunks of tokens
bool head_in_chunks(const Model *m)
{
	return m->plan.head_chunk > 0 && m->has_targets;
}

/* z: room for the logits of n tokens, which begin at `first` */
static void pass_chunk(Model *m, Array z, Array norm, bool keep, size_t first,
	size_t n)
{
	size_t C = m->shape.d_model;
	ParamSpan head = { shape_nparameters(&m->shape) - 1, 1 };
	Array x = array_part(m->device, norm, first * C);
	linear_forward(m, z, x, head, n);
	head_losses(m, z, keep, first, n);
	if (keep) {
		linear_backward_input(m, array_part(m->device, m->dnorm, first * C), 0,
			z, head, n);
		linear_weight_gradient(m, m->dhead, z, x, head, first > 0, n);
	}
}

static void forward_in_chunks(Model *m, Array *norm, bool keep)
{
	size_t N = m->B * m->T, C = m->shape.d_model, V = m->shape.vocab,
		chunk = m->plan.head_chunk;
	if (chunk > N)
		chunk = N;
	new_losses(m);
	if (keep) {
		m->dnorm = array_new(m->device, N * C, m->fused
			? m->policy->op[OP_LINEAR].output : TYPE_REAL, MEM_ACTIVATION,
			"d ln_final");
		m->dhead = array_new(m->device, V * C, TYPE_REAL, MEM_ACTIVATION,
			"d lm_head");
	}
	Array z = temporary(m, chunk * V, m->policy->op[OP_LINEAR].output,
		"logits of a chunk");
	for (size_t first = 0; first < N; first += chunk)
		pass_chunk(m, z, *norm, keep, first, N - first < chunk ? N - first
			: chunk);
	array_drop(m, &z);
	array_drop(m, norm);
}

void head_gradient(Model *m, double beta)
{
	int last = shape_nparameters(&m->shape) - 1;
	take_gradient(m, last, &m->dhead, beta);
}

void head_forward(Model *m, Array *norm, bool keep)
{
	size_t N = m->B * m->T;
	ParamSpan head = { shape_nparameters(&m->shape) - 1, 1 };
	if (head_in_chunks(m)) {
		forward_in_chunks(m, norm, keep);
		return;
	}
	m->logits = activation(m, N * m->shape.vocab, OP_LINEAR, "logits");
	linear_forward(m, m->logits, *norm, head, N);
	if (norm->at != m->norm.at)
		array_drop(m, norm);
	if (m->has_targets) {
		new_losses(m);
		head_losses(m, m->logits, keep && m->fused, 0, N);
	}
}
