#include "estimate/memory_estimate.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "dist/dry.h"
#include "model/fp8.h"
#include "ops/dry.h"

// make a model like another on a dry device
struct DryRun {
	Device *device;
	Comm *comm;                      /* NULL: the model is not sharded */
	Model *m;
	RankGroup group;
	Zero *zero;                      /* NULL: the model is not sharded */
	Optimizer adamw;                 /* unless zero; n = 0: none */
	Batch batch;
	Mode mode;
	bool warm;                       /* a step has been taken */
};

static void start_nothing(void *self, const GroupOp *op, GroupSlot slot)
{
}

static void join_nothing(void *self, GroupSlot slot)
{
}

static Model *bare_or_whole(DryRun *r, const Model *m, bool bare)
{
	if (bare)
		return model_new_bare(r->device, &m->whole, m->policy, m->seed);
	if (m->group == NULL)
		return model_new(r->device, &m->whole, m->policy, m->seed);
	r->group = *m->group;
	r->group.start = start_nothing;
	r->group.join = join_nothing;
	return model_new_part(r->device, &m->whole, m->policy, m->seed, &r->group);
}

static void make_alike(DryRun *r, const Model *m, bool bare)
{
	Model *twin = r->m = bare_or_whole(r, m, bare);
	if (m->fused) {
		model_fuse(twin);
		model_set_attention(twin, m->flash);
	} else if (m->compute_weights.at) {
		model_keep_compute(twin);
	}
	model_set_gradient_type(twin, m->gradients.type);
	twin->checkpoint_every = m->checkpoint_every;
	twin->recompute_blocks = m->recompute_blocks;
	twin->layernorm = m->layernorm;
	twin->plan = m->plan;
	if (m->fp8)
		fp8_set(twin, m->fp8->settings);
}

// train it
static const OptimizerSettings settings = { .lr = 1e-3, .beta1 = 0.9,
	.beta2 = 0.999, .eps = 1e-8 };

static void train_sharded(DryRun *r, const Sharding *by)
{
	r->comm = comm_open(link_dry(by->rank, by->ranks), r->device,
		&(CommSettings){ .pushes = by->settings.exchange });
	r->zero = zero_new(r->m, r->comm, &by->settings, &adamw_kind, settings);
}

DryRun *dry_run_new(const Model *m, size_t B, size_t T, Mode mode,
	const Sharding *by)
{
	DryRun *r = need(calloc(1, sizeof *r));
	r->device = dry_device(m->device->backend->name);
	r->mode = mode;
	make_alike(r, m, by != NULL);
	if (by)
		train_sharded(r, by);
	else if (mode == MODE_TRAIN)
		r->adamw = adamw_new(r->m, settings.lr, settings.beta1,
			settings.beta2, settings.eps, settings.decay);
	r->batch = batch_random(B, T, m->whole.vocab, m->seed);
	return r;
}

void dry_run_free(DryRun **run)
{
	DryRun *r = *run;
	batch_free(&r->batch);
	if (r->zero)
		zero_free(&r->zero);
	if (r->adamw.n)
		optimizer_free(&r->adamw);
	model_free(&r->m);
	if (r->comm)
		comm_close(&r->comm);
	device_close(&r->device);
	free(r);
	*run = NULL;
}

// take a dry step
static void step(DryRun *r)
{
	Optimizer *o = r->zero ? zero_optimizer(r->zero) : r->adamw.n ? &r->adamw
		: NULL;
	timed_step(r->m, o, &r->batch, r->mode);
}

MemoryEstimate dry_run_step(DryRun *r, const ModelPlan *plan)
{
	Device *d = r->device;
	MemoryEstimate e = { .total = 0 };
	model_follow(r->m, plan);
	if (!r->warm)
		step(r);
	r->warm = true;
	device_reset_peak(d);
	step(r);
	e.workspace = (double)d->active[MEM_TEMPORARY];
	for (int k = 0; k < NCATEGORIES; k++)
		e.category[k] = (double)d->peak[k];
	e.category[MEM_TEMPORARY] -= e.workspace;
	e.total = (double)d->total_peak - e.workspace;
	return e;
}

// estimate the memory of a step
static MemoryEstimate estimate(const Model *m, size_t B, size_t T, Mode mode,
	const Sharding *by)
{
	DryRun *r = dry_run_new(m, B, T, mode, by);
	MemoryEstimate e = dry_run_step(r, &m->plan);
	dry_run_free(&r);
	return e;
}

MemoryEstimate memory_estimate(const Model *m, size_t B, size_t T, bool train)
{
	return estimate(m, B, T, train ? MODE_TRAIN : MODE_FORWARD_BACKWARD, NULL);
}

MemoryEstimate memory_estimate_sharded(const Model *m, size_t B, size_t T,
	const Sharding *s)
{
	return estimate(m, B, T, MODE_TRAIN, s);
}

double memory_estimate_forward(const Model *m, size_t B, size_t T)
{
	return estimate(m, B, T, MODE_FORWARD, NULL).total;
}

// derive what a block saves
/* casts of a block's weights, which the eager path keeps */
static double bytes_of_casts(const Model *m)
{
	Type type = m->policy->op[OP_LINEAR].input;
	double C = m->shape.d_model, A = m->shape.heads * m->shape.d_head;
	if (m->compute_weights.at
		|| m->ops->reads(m->device, m->weights.type, type))
		return 0;
	return (4 * A + 3.0 * m->shape.d_ff) * C * m->device->backend->width(type);
}

/* those of an element of P, and of its cast */
static double bytes_of_P(const Model *m)
{
	const Policy *p = m->policy;
	Type stored = p->op[OP_SOFTMAX].output, read = p->op[OP_SCORES].input;
	size_t (*width)(Type type) = m->device->backend->width;
	if (m->fused)
		return width(p->op[OP_SCORES].output);
	return width(stored) + (m->ops->reads(m->device, stored, read) ? 0
		: width(read));
}

double memory_estimate_block(const Model *m, size_t B, size_t T)
{
	const Backend *b = m->device->backend;
	const RankGroup *g = m->group;
	bool keeps_norms = !m->fused || (g && g->keep_norms);
	double w = b->width(m->policy->op[OP_LINEAR].output),
		r = b->width(m->policy->op[OP_RESIDUAL].output),
		real_size = b->width(TYPE_REAL), N = (double)B * T,
		own = g ? N / g->ranks : N, C = m->shape.d_model, H = m->shape.heads,
		A = H * m->shape.d_head, F = m->shape.d_ff,
		norms = keeps_norms ? 2 * C : 0,
		scores = m->flash ? H * real_size : H * T * bytes_of_P(m);
	return own * 2 * (C * r + real_size) + N * ((norms + 4 * A
		+ (m->fused ? 2 : 3) * F) * w + scores) + bytes_of_casts(m);
}
