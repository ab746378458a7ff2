#include "estimate/cost_unit.h"

#include <math.h>

// find what a collective takes
double cost_collective(const CostMachine *m, CostCollective what, CostGroup g,
	double nbytes)
{
	if (g.n <= 1 || nbytes <= 0)
		return 0;
	bool reduces = what == COST_ALL_REDUCE || what == COST_REDUCE_SCATTER;
	long on_node = g.node < 1 ? 1 : g.node < g.n ? g.node : g.n;
	double n = g.n, nodes = ceil(n / on_node), part = (n - 1) / n,
		GBps = nodes > 1 ? fmin(on_node > 1 ? m->near.GBps : INFINITY,
			on_node * m->far.GBps) : m->near.GBps,
		ring = (n - nodes) * m->near.step_us + (nodes - 1) * m->far.step_us,
		tree = 2 * (on_node - 1) * m->near.step_us
			+ 2 * ceil(log2(nodes)) * m->far.step_us,
		sent = what == COST_ALL_REDUCE ? 2 * part
			: what == COST_BROADCAST ? 1 : part,
		latency = what == COST_ALL_REDUCE ? fmin(2 * ring, tree) : ring;
	double cost = m->byte_cost[what] == 0 ? 1 : fmax(0, m->byte_cost[what]);
	latency += what == COST_BROADCAST ? m->broadcast_us : 0;
	return (m->call_us + latency) * 1e-3 + sent * nbytes / GBps * cost * 1e-6
		+ (reduces ? part * nbytes * 1e-9 * m->sum_ms_per_GB : 0)
		+ m->pieces_us * sqrt(sent * nbytes * 1e-6) * 1e-3;
}

// count a model's parameters and FLOPs
const char *const cost_names[NCOST] = { CHOICE_NAMES(COST_STRATEGIES_OF) };

CostShape cost_shape(const Shape *s)
{
	return (CostShape){ s->vocab, s->d_model, s->d_ff, s->layers, s->heads,
		s->d_head, s->heads, 3 };
}

double cost_block_tensors(const CostShape *s, double tensors[COST_TENSORS])
{
	double C = s->d_model, A = s->heads * s->d_head, K = s->kv_heads * s->d_head,
		F = s->d_ff, sum = 0;
	const double all[COST_TENSORS] = { s->heads > 0 ? C : 0, A * C, K * C, K * C,
		A * C, s->heads > 0 ? C : 0, C * F, s->matrices > 2 ? C * F : 0, C * F };
	for (int i = 0; i < COST_TENSORS; i++) {
		sum += all[i];
		if (tensors)
			tensors[i] = all[i];
	}
	return sum;
}

double cost_parameters(const CostShape *s)
{
	double gain = s->heads > 0 && s->vocab > 0 ? s->d_model : 0;
	return s->layers * cost_block_tensors(s, NULL) + 2 * s->vocab * s->d_model
		+ gain;
}

static double linear_flops(const CostShape *s)
{
	double gains = s->heads > 0 ? 2 * s->d_model : 0;
	return 2 * (cost_block_tensors(s, NULL) - gains);
}

static double attention_flops(const CostShape *s, double context)
{
	return 2 * context * s->heads * s->d_head;
}

double cost_forward_flops(const CostShape *s, double context)
{
	return s->layers * (linear_flops(s) + attention_flops(s, context))
		+ 2 * s->vocab * s->d_model;
}

// find what a pass over a unit takes
/* ms of matmuls with `weights` bytes of weights, on one of the devices that
 * share a layer */
static double matmul_ms(const CostMachine *m, double flops, double weights)
{
	return fmax(flops / m->TFLOPs * 1e-9, weights / m->GBps * 1e-6);
}

/* bytes of casts for a token */
static double cast_nbytes(const CostRun *r, bool backward)
{
	const CostShape *s = &r->shape;
	double C = s->d_model, A = s->heads * s->d_head,
		K = s->kv_heads * s->d_head;
	return r->fp8 > 0 ? (r->low + 2 * r->code)
		* (2 * C + A + (backward ? 2 * K : 0)) : 0;
}

static double block_ms(const CostMachine *m, const CostRun *r, bool backward)
{
	const CostShape *s = &r->shape;
	double C = s->d_model, A = s->heads * s->d_head, K = s->kv_heads * s->d_head,
		F = s->d_ff, N = r->tokens / r->parts, w = r->low,
		weights = cost_block_tensors(s, NULL) * (r->fp8 > 0 ? r->code : w),
		norms = s->heads > 0 ? C * (backward ? 8 * r->real + 4 * w
			: 4 * r->real + 4 * w) : 0,
		nbytes = norms + (backward ? 10 * A + 2 * K + 5 * F
			: 2 * (A + K) + 3 * F) * w + cast_nbytes(r, backward),
		flops = N * (linear_flops(s) / (r->fp8 > 0 ? r->fp8 : 1)
			+ attention_flops(s, r->context)),
		forward = matmul_ms(m, flops / r->tensor, weights / r->tensor),
		us = backward ? m->backward_us : m->forward_us;
	if (backward && r->recompute)
		us += m->forward_us;
	return (backward ? 2 + r->recompute : 1) * forward
		+ N * nbytes / r->tensor / m->GBps * 1e-6 + us * 1e-3;
}

/* embedding and head are spread over the stages of a pipeline */
static double embedding_ms(const CostMachine *m, const CostRun *r)
{
	double N = r->tokens / r->parts;
	return r->shape.vocab > 0 ? 2 * N * r->shape.d_model * r->real / m->GBps
		/ r->tensor / r->stages * 1e-6 : 0;
}

static double head_ms(const CostMachine *m, const CostRun *r, bool backward)
{
	double V = r->shape.vocab, C = r->shape.d_model, N = r->tokens / r->parts;
	return ((backward ? 2 : 1) * matmul_ms(m, 2 * N * V * C, V * C * r->low)
		+ 3 * N * V * r->low / m->GBps * 1e-6) / r->tensor / r->stages;
}

int cost_blocks(const CostRun *r)
{
	return (int)ceil(r->shape.layers / r->stages);
}

// scale a pass over a unit to what was measured
static double counted_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward)
{
	return unit == UNIT_EMBEDDING ? embedding_ms(m, r)
		: unit == UNIT_BLOCK ? block_ms(m, r, backward)
		: head_ms(m, r, backward);
}

double cost_unit_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward)
{
	double given = backward ? r->bwd_ms : r->fwd_ms,
		ms = counted_ms(m, r, unit, backward);
	CostRun measured = *r;
	measured.fp8 = 0;
	double all = counted_ms(m, &measured, UNIT_EMBEDDING, backward)
		+ cost_blocks(r) * counted_ms(m, &measured, UNIT_BLOCK, backward)
		+ counted_ms(m, &measured, UNIT_HEAD, backward);
	return given > 0 && all > 0 ? ms * given / all : ms;
}

// place the ranks of a group on nodes
static long in_node(const CostMachine *m, long taken, long n)
{
	long left = m->node / taken;
	return left < 1 ? 1 : left < n ? left : n;
}

CostGroup cost_data_group(const CostMachine *m, const CostRun *r)
{
	return (CostGroup){ r->data, in_node(m, r->tensor * r->parts, r->data) };
}

// find what a unit waits for in tensor parallelism
/* ms of the collectives for which a unit waits: gathers and scatters of tensor
 * parallelism, and the keys and values of the other parts of a sequence */
double cost_tensor_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward)
{
	const CostShape *s = &r->shape;
	const CostGroup across = { r->tensor, in_node(m, 1, r->tensor) },
		along = { r->parts, in_node(m, r->tensor, r->parts) };
	double stream = r->tokens / r->parts * s->d_model * r->low,
		keys = 2 * r->tokens * s->kv_heads * s->d_head * r->low / r->tensor,
		pair = cost_collective(m, COST_ALL_GATHER, across, stream)
			+ cost_collective(m, COST_REDUCE_SCATTER, across, stream),
		gather = cost_collective(m, COST_ALL_GATHER, along, keys),
		scatter = cost_collective(m, COST_REDUCE_SCATTER, along, keys),
		again = backward && r->recompute;
	if (unit != UNIT_BLOCK)
		return unit == UNIT_HEAD && s->vocab > 0 ? pair / 2 / r->stages : 0;
	return (1 + again) * (s->heads > 0 ? 2 : 1) * pair + (1 + again) * gather
		+ backward * scatter;
}

// find what the optimizer takes
double cost_elements(const CostRun *r)
{
	return cost_parameters(&r->shape) / (r->tensor * r->stages);
}

static double update_nbytes(const CostRun *r, double gradient)
{
	return 6 * r->real + gradient + (r->mixed ? r->low : 0);
}

double cost_update_ms(const CostMachine *m, const CostRun *r)
{
	double share = r->strategy >= COST_SHARDED ? 1.0 / r->data : 1,
		alone = r->opt_ms > 0 ? r->opt_ms * update_nbytes(r, r->gradient)
			/ update_nbytes(r, r->real)
		: cost_elements(r) * update_nbytes(r, r->gradient) / m->GBps * 1e-6;
	return alone * share;
}
