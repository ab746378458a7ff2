#include "cases/sharding_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dist/dry.h"
#include "dist/sharded_model.h"
#include "dist/zero.h"
#include "ops/dry.h"

// plan strategies
void sharding_given_settle(ShardingGiven *g)
{
	int p = g->ddp.precision;
	ddp_given_settle(&g->ddp);
	if (p == POLICY_FP16 || (p == POLICY_TF32 && !harness_on_gpu()))
		usage_error("--precision %s: expected fp32 or bf16", policies[p].name);
}

// plan the prefetches of a strategy
static void plan_strategy(Plan *plan, const ShardingGiven *g, ShardingConfig c)
{
	double bucket_mb = harness_on_gpu() ? 25 : 0.25;
	bool ahead = c.strategy == FSDP, buckets = c.strategy == DDP
		|| c.strategy == SHARDED;
	if ((g->strategy >= 0 && g->strategy != c.strategy)
		|| !ddp_settle(&c.ddp, &g->ddp))
		return;
	c.ddp.bucket_mb = buckets ? bucket_mb : 0;
	int first = ahead && c.ddp.sums == SUMS_BY_OPTIMIZER && g->ddp.sums < 0,
		last = !ahead ? 0 : first ? 1 : 2;
	if (ahead && g->prefetch >= 0)
		first = last = (int)g->prefetch;
	for (c.prefetch = first; c.prefetch <= last; c.prefetch++)
		plan_add(plan, &c);
}

// plan strategies of a size
void sharding_plan(Plan *plan, const ShardingGiven *g, int size,
	Strategy first, Strategy last, bool both)
{
	int usual = harness_on_gpu() ? POLICY_BF16 : POLICY_FP32;
	bool any = g->ddp.precision < 0;
	int sizes = harness_on_gpu() ? NTRAINED : NTRAINED - 1;
	if (g->ddp.size >= 0 ? g->ddp.size != size : size >= sizes)
		return;
	for (int p = 0; p < (both && any ? 2 : 1); p++)
		for (Strategy s = first; s <= last; s++) {
			ShardingConfig c = { .ddp = { .model = { .size = size } },
				.strategy = s };
			c.ddp.model.precision = !any ? g->ddp.precision : p == 0 ? usual
				: POLICY_FP32 + POLICY_BF16 - usual;
			c.ddp.wire = g->ddp.wire >= 0 ? g->ddp.wire
				: policies[c.ddp.model.precision].op[OP_LINEAR].output == BF16
				? BF16 : FP32;
			plan_strategy(plan, g, c);
			c.ddp.sums = SUMS_BY_OPTIMIZER;
			if ((s == ZERO1 || s == FSDP) && g->ddp.fusion == FUSION_FUSED
				&& g->ddp.sums < 0 && g->ddp.ranks <= MOST_GRADIENTS)
				plan_strategy(plan, g, c);
		}
}

// begin and end a strategy
static const OptimizerSettings settings = { .lr = 1e-3, .beta1 = 0.9,
	.beta2 = 0.999, .eps = 1e-8, .decay = 0.01 };

ShardingCase *sharding_case(Row *row, const ShardingConfig *config)
{
	ShardingCase *c = need(calloc(1, sizeof *c));
	c->config = *config;
	c->run = ddp_case(row, &config->ddp);
	return c;
}

static void begin_zero(ShardingCase *c)
{
	DdpCase *run = c->run;
	ddp_case_model(run, true);
	c->zero = zero_new(run->m, run->comm, &(ZeroSettings){
		.stage = c->config.strategy - ZERO1 + 1,
		.prefetch = (int)c->config.prefetch,
		.bucket_mb = run->config.bucket_mb,
		.wire = run->config.wire,
		.exchange = run->config.sums == SUMS_BY_OPTIMIZER,
		.early = c->config.update == UPDATE_EARLY },
		&adamw_kind, settings);
	ddp_case_train(run, zero_optimizer(c->zero));
}

// begin with a sharded optimizer
static void begin_sharded(ShardingCase *c)
{
	DdpCase *run = c->run;
	ddp_case_model(run, false);
	run->ddp = ddp_new(run->m, run->comm, &(DdpSettings){ DDP_BUCKETED,
		run->config.bucket_mb, run->config.wire,
			false });
	c->sharded = sharded_model_new(run->m, run->comm, &adamw_kind, settings);
	ddp_case_train(run, sharded_model_optimizer(c->sharded));
}

// begin and close the case of any strategy
void sharding_case_begin(ShardingCase *c)
{
	Strategy s = c->config.strategy;
	if (s >= ZERO1)
		begin_zero(c);
	else if (s == SHARDED)
		begin_sharded(c);
	else
		ddp_case_begin(c->run, s == DDP, DDP_BUCKETED,
			c->run->config.bucket_mb);
}

void sharding_case_close(ShardingCase **c)
{
	if ((*c)->zero)
		zero_free(&(*c)->zero);
	if ((*c)->sharded)
		sharded_model_free(&(*c)->sharded);
	ddp_case_end((*c)->run);
	ddp_case_close(&(*c)->run);
	free(*c);
	*c = NULL;
}

// time a strategy
/* bytes of the groups from `first` on: as weights that are read; wire > 0: of
 * elements of so many bytes */
static double group_bytes(const ShardingCase *c, int first, double wire)
{
	const ShardMap *map = zero_map(c->zero);
	const Model *m = c->run->m;
	Type linear = m->policy->op[OP_LINEAR].input;
	double wide = type_size(m->policy->parameter), low = m->fused
		&& !m->ops->reads(m->device, m->policy->parameter, linear)
		? type_size(linear) : wide, sum = 0;
	for (int k = first < 0 ? 0 : first; k < map->ngroups; k++)
		sum += map->groups[k].extent * (wire > 0 ? wire : k ? low : wide);
	return sum;
}

// derive what a rank sends
static double derived_bytes(const ShardingCase *c)
{
	const Model *m = c->run->m;
	double ranks = comm_ranks(c->run->comm), P = m->extent, sum = 0,
		wire = type_size(c->config.ddp.wire),
		sent = c->config.ddp.sums == SUMS_BY_OPTIMIZER ? ranks : 2;
	if (c->zero) {
		int ngroups = zero_map(c->zero)->ngroups;
		sum = group_bytes(c, 0, wire) + group_bytes(c, 0, 0)
			+ sent * zero_map(c->zero)->gains * wire;
		if (c->config.strategy == FSDP)
			sum += group_bytes(c, c->config.prefetch == 0, 0)
				- group_bytes(c, ngroups - 1 - (int)c->config.prefetch, 0);
	} else if (c->run->ddp) {
		sum = sent * P * wire
			+ (c->sharded ? 4 * (double)m->count : 0);
	}
	return sum * (ranks - 1) / ranks;
}

// set what was sent, beside the formula
static void set_sent(Row *row, const ShardingCase *c)
{
	const double *sent = c->run->sent;
	row_set(row, "all_reduce_MB", "%.4f", sent[ALL_REDUCE] * 1e-6);
	row_set(row, "reduce_scatter_MB", "%.4f", sent[REDUCE_SCATTER] * 1e-6);
	row_set(row, "exchange_MB", "%.4f", (sent[EXCHANGE] + sent[ALL_TO_ALL])
		* 1e-6);
	row_set(row, "all_gather_MB", "%.4f", sent[ALL_GATHER] * 1e-6);
	row_set(row, "broadcast_MB", "%.4f", sent[BROADCAST] * 1e-6);
	row_set(row, "sent_derived_MB", "%.4f", derived_bytes(c) * 1e-6);
	row_set(row, "weights_MB", "%.4f", c->run->m->count * 4e-6);
}

// time a case
void sharding_case_time(Row *row, ShardingCase *c)
{
	DdpCase *run = c->run;
	long steps = run->config.steps;
	DdpTimes t = ddp_case_steps(run, 0, run->config.warmup, steps);
	row_set(row, "period_ms", "%.4f", t.period_ms);
	ddp_case_set_times(row, &t);
	t = ddp_case_steps(run, WATCH_COMM, 1, steps);
	row_set(row, "comm_ms", "%.4f", t.comm_ms);
	row_set(row, "blocked_ms", "%.4f", t.blocked_ms);
	row_set(row, "alone_ms", "%.4f", ddp_case_alone(run, (int)steps));
	row_set(row, "via", "%s", comm_transport(run->comm));
	set_sent(row, c);
	if (c->config.strategy == DDP || c->config.strategy == SHARDED)
		ddp_case_check(run);
}

// add up bytes in use
static double total_of(const ptrdiff_t active[NCATEGORIES])
{
	ptrdiff_t total = 0;
	for (int k = 0; k < NCATEGORIES; k++)
		total += active[k];
	return (double)total;
}

/* the part of the log from..to; active: bytes before it and, on return, after
 * it */
static Moment moment_of(const Device *d, size_t from, size_t to,
	ptrdiff_t active[NCATEGORIES])
{
	Moment m = { 0 };
	for (size_t i = from; i <= to; i++) {
		if (total_of(active) > m.peak) {
			m.peak = total_of(active);
			for (int k = 0; k < NCATEGORIES; k++)
				m.at_peak[k] = (double)active[k];
		}
		if (i < to)
			active[d->log[i].category] += d->log[i].nbytes;
	}
	m.active = total_of(active);
	m.workspace = (double)active[MEM_TEMPORARY];
	return m;
}

// take workspaces out of a moment
static void leave_out(Moment *m, double workspace)
{
	m->workspace = workspace;
	m->at_peak[MEM_TEMPORARY] -= workspace;
	m->peak -= workspace;
	m->active -= workspace;
}

// log a run and cut it into moments
void moments_of_steps(DdpCase *run, void (*begin)(void *arg), void *arg,
	Moment moments[NMOMENTS])
{
	Device *d = run->device;
	ptrdiff_t active[NCATEGORIES];
	for (int k = 0; k < NCATEGORIES; k++)
		active[k] = (ptrdiff_t)d->active[k];
	device_log_memory(d, true);
	begin(arg);
	size_t made = d->nlog;
	ddp_case_hook(run);
	timed_step(run->m, run->optimizer, &run->batch, MODE_TRAIN);
	size_t first = d->nlog;
	timed_step(run->m, run->optimizer, &run->batch, MODE_TRAIN);
	device_log_memory(d, false);
	if (d->unlogged)
		die("two steps have %zu events more than the log holds", d->unlogged);
	moments[MOMENT_INIT] = moment_of(d, 0, made, active);
	moment_of(d, made, first, active);
	moments[MOMENT_BEFORE] = moment_of(d, first, run->update_at, active);
	moments[MOMENT_AFTER] = moment_of(d, run->update_at, d->nlog, active);
	for (int i = 0; i < NMOMENTS; i++)
		leave_out(&moments[i], moments[i == MOMENT_INIT ? i : MOMENT_AFTER]
			.workspace);
}

static void begin_case(void *c)
{
	sharding_case_begin(c);
}

void sharding_case_memory(ShardingCase *c, Moment moments[NMOMENTS])
{
	moments_of_steps(c->run, begin_case, c, moments);
}

// set the memory of a moment
void sharding_case_set_memory(Row *row, const Moment *m,
	const MemoryEstimate *derived)
{
	const double MiB = 1 << 20;
	char column[64];
	row_set(row, "peak_MiB", "%.3f", m->peak / MiB);
	for (int k = 0; k < NCATEGORIES; k++) {
		snprintf(column, sizeof column, "%s_MiB", category_names[k]);
		row_set(row, column, "%.3f", m->at_peak[k] / MiB);
		if (k > MEM_OPTIMIZER || derived == NULL)
			continue;
		snprintf(column, sizeof column, "%s_derived_MiB", category_names[k]);
		row_set(row, column, "%.3f", derived->category[k] / MiB);
	}
	row_set(row, "active_MiB", "%.3f", m->active / MiB);
	row_set(row, "workspace_MiB", "%.3f", m->workspace / MiB);
	if (derived)
		row_set(row, "derived_MiB", "%.3f", derived->total / MiB);
}

// derive the memory of a strategy
static ShardingCase *dry_case(const ShardingCase *c)
{
	const DdpConfig *config = &c->config.ddp;
	const DdpCase *run = c->run;
	ShardingCase *twin = need(calloc(1, sizeof *twin));
	Device *d = dry_device(run->device->backend->name);
	Link *link = link_dry(comm_rank(run->comm), comm_ranks(run->comm));
	twin->config = c->config;
	twin->run = ddp_case_over(d, comm_open(link, d, &(CommSettings){
		.transport = transport_names[config->transport],
		.pushes = config->sums == SUMS_BY_OPTIMIZER }), config);
	return twin;
}

// estimate a moment of a case
MemoryEstimate sharding_case_estimate(const ShardingCase *c, int moment)
{
	ShardingCase *dry = dry_case(c);
	Moment moments[NMOMENTS];
	sharding_case_memory(dry, moments);
	sharding_case_close(&dry);
	const Moment *m = &moments[moment];
	MemoryEstimate e = { .total = moment == MOMENT_BEFORE ? m->peak
		: m->active };
	for (int k = 0; k < NCATEGORIES; k++)
		e.category[k] = m->at_peak[k];
	return e;
}
