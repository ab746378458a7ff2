#include "estimate/cost.h"

#include <math.h>

// count what stays
/* bytes of `slots` slots that units 0, 1, ... use in turn. An element of the
 * embedding has `first` bytes, of all other units `rest` */
static double slot_nbytes(const CostRun *r, int slots, double first,
	double rest)
{
	const CostShape *s = &r->shape;
	int units = cost_blocks(r) + 2;
	double gains = s->heads > 0 ? 2 * s->d_model : 0, sum = 0,
		table = s->vocab * s->d_model / r->tensor / r->stages,
		block = (cost_block_tensors(s, NULL) - gains) / r->tensor;
	for (int j = 0; j < slots && j < units; j++) {
		double most = 0;
		for (int u = j; u < units; u += slots)
			most = fmax(most, u == 0 ? table * first
				: (u == units - 1 ? table : block) * rest);
		sum += most;
	}
	return sum;
}

static double weight_nbytes(const CostRun *r)
{
	const CostShape *s = &r->shape;
	double all = cost_elements(r), n = r->data,
		table = s->vocab * s->d_model / r->tensor / r->stages,
		low = r->mixed ? r->low : r->real,
		codes = r->fp8 > 0 ? 2 * r->code * cost_blocks(r) / r->tensor
			* cost_block_tensors(s, NULL) : 0;
	if (r->strategy <= COST_SHARDED)
		return all * (r->real + (r->mixed ? r->low : 0)) + codes;
	if (r->strategy == COST_FSDP)
		return slot_nbytes(r, (int)r->prefetch + 1, r->real, low)
			+ all * r->real / n + (r->mixed ? (all - table) * low / n : 0);
	return (all - table) * low + table * r->real
		+ (r->mixed ? (all - table) * r->real / n : 0) + codes;
}

static double state_nbytes(const CostRun *r)
{
	double all = cost_elements(r), moments = 2 * all * r->real,
		n = r->strategy >= COST_SHARDED ? r->data : 1,
		gradients = r->strategy >= COST_ZERO2 ? all * r->gradient / n
			+ slot_nbytes(r, 2, r->gradient, r->gradient) : all * r->gradient;
	return weight_nbytes(r) + moments / n + gradients
		+ r->real * r->context * r->shape.d_head;
}

// count what a step makes
static double saved_by_block(const CostRun *r, double N)
{
	const CostShape *s = &r->shape;
	double A = s->heads * s->d_head, K = s->kv_heads * s->d_head,
		scores = s->heads * (r->flash ? r->real : r->context * r->low),
		norms = s->heads > 0 ? 2 * (s->d_model + 1) * r->real
			: s->d_model * r->low,
		codes = r->fp8 > 0 ? (2 * s->d_model + A + s->d_ff) * r->code : 0;
	return N * (norms + (2 * A + 2 * K + (s->matrices > 2 ? 2 : 1) * s->d_ff)
		* r->low + scores + codes);
}

/* the most bytes that activations and temporaries take together */
static double activation_nbytes(const CostRun *r)
{
	const CostShape *s = &r->shape;
	/* microbatches under way on the first stage */
	double under_way = fmin(r->microbatches, r->stages),
		N = r->tokens / r->parts / r->tensor, C = s->d_model,
		A = s->heads * s->d_head, F = s->d_ff, w = r->low,
		stream = N * C * r->real, saved = saved_by_block(r, N),
		blocks = cost_blocks(r), low = r->mixed ? w : 0,
		kept = under_way * blocks * (r->recompute ? stream : saved)
			+ (r->recompute ? saved - stream : 0),
		whole = r->norms && r->tensor > 1 ? N * r->tensor * C * w : 0,
		rest = N * (3 * r->real + 8) + (2 * blocks + 2) * whole,
		base = N * C * (w + r->real + low),
		gone = 2 * N * F * w + stream, above = under_way * blocks
			* (r->recompute ? stream : saved) + stream + N * s->vocab * w + rest,
		attention = 4 * N * A * w + (r->flash ? 0
			: N * s->heads * r->context * w);
	/* in FP8 beside the gradient of SwiGLU's result both copies of those of gate
	 * and up */
	double ffn = N * F * (w + (r->fp8 > 0 ? 4 * r->code : 0));
	return fmax(above + base, kept + rest + base
		+ fmax(ffn, attention - gone));
}

double cost_memory(const CostRun *r)
{
	return state_nbytes(r) + activation_nbytes(r);
}
