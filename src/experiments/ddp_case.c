#include "experiments/ddp_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/array.h"

int ddp_config_ranks(const void *config)
{
	return (int)((const DdpConfig *)config)->ranks;
}

/* of symmetric windows, in our own measurements */
enum { CTAS = 8 };

void ddp_given_settle(DdpGiven *g)
{
	bool gpu = harness_on_gpu();
	if (g->warmup == 0)
		g->warmup = gpu ? 5 : 1;
	if (g->steps == 0)
		g->steps = gpu ? 10 : 3;
	if (g->sums && !g->fusion)
		usage_error("--sums optimizer needs --fusion fused");
	if (g->sums && g->ranks > MOST_GRADIENTS)
		usage_error("--sums optimizer is for %d ranks at most", MOST_GRADIENTS);
}

void ddp_plan(Plan *plan, const DdpGiven *g, DdpConfig c)
{
	if ((g->size >= 0 && c.model.size != g->size)
		|| (g->precision >= 0 && c.model.precision != g->precision)
		|| (g->wire >= 0 && c.wire != g->wire))
		return;
	c.model.context = g->context ? g->context : harness_on_gpu() ? 512
		: 512 / SCALE;
	c.model.fusion = g->fusion;
	c.batch = g->batch;
	c.ranks = g->ranks;
	if (c.transport == 0)
		c.transport = g->transport;
	c.ctas = g->ctas >= 0 ? g->ctas : harness_on_gpu() && !g->sums ? CTAS : 0;
	c.sums = g->sums;
	plan_add(plan, &c);
}

static void plan_precisions(Plan *plan, const DdpGiven *g, DdpConfig c)
{
	bool gpu = harness_on_gpu(), any = g->precision < 0,
		both = c.model.size == g->size || c.model.size == SIZE_XL;
	c.wire = g->wire > 0;
	c.model.precision = any && gpu ? POLICY_BF16 : any ? POLICY_FP32
		: g->precision;
	ddp_plan(plan, g, c);
	c.model.precision = POLICY_FP32;
	if (any && gpu && both)
		ddp_plan(plan, g, c);
}

void ddp_plan_kinds(Plan *plan, const DdpGiven *g, int kinds)
{
	for (int s = 0; s < NSIZES; s++) {
		bool one = g->size == s, few = s == SIZE_SMALL || s == SIZE_LARGE;
		if (!one && (g->size >= 0 || s >= NTRAINED
			|| (!harness_on_gpu() && !few)))
			continue;
		for (int kind = 0; kind < kinds; kind++)
			plan_precisions(plan, g, (DdpConfig){ { .size = s },
				.kind = kind });
	}
}
Comm *ddp_comm(Row *row, Device *d, int transport, int ctas)
{
	return harness_comm(row, d, &(CommSettings){
		.transport = transport_names[transport], .ctas = ctas });
}

DdpCase *ddp_case(Row *row, const DdpConfig *config)
{
	DdpCase *c = need(calloc(1, sizeof *c));
	c->config = *config;
	c->device = harness_device();
	c->comm = ddp_comm(row, c->device, config->transport, (int)config->ctas);
	c->intervals = need(malloc(NSTAMPS * sizeof *c->intervals));
	c->announced = need(malloc(NSTAMPS * sizeof *c->announced));
	return c;
}

void ddp_case_close(DdpCase **c)
{
	comm_close(&(*c)->comm);
	device_close(&(*c)->device);
	free((*c)->intervals);
	free((*c)->announced);
	free(*c);
	*c = NULL;
}
enum { WAITING = 4, FIRST_STAMP };

static int begin(DdpCase *c, Queue queue, const char *name, int number,
	bool backward)
{
	int from = FIRST_STAMP + 2 * c->nintervals;
	if (from + 1 >= NSTAMPS)
		die("a step has more intervals than there are stamps");
	device_stamp(c->device, queue, from);
	c->intervals[c->nintervals] = (Interval){ queue, name, number, backward,
		from, from + 1 };
	return c->nintervals++;
}

static void end(DdpCase *c, int interval)
{
	const Interval *i = &c->intervals[interval];
	device_stamp(c->device, i->queue, i->to);
}

/* -1: the queue is not watched */
static int begin_comm(DdpCase *c, const char *name, int number)
{
	if ((c->watch & WATCH_COMM) == 0)
		return -1;
	device_wait(c->device, COMM, device_event(c->device, COMPUTE));
	return begin(c, COMM, name, number, true);
}

static void watch_ready(void *self, int first, int count)
{
	DdpCase *c = self;
	c->announced[c->nannounced++] = (Announced){ first, count };
	int interval = begin_comm(c, "gradients", first);
	c->inner.gradient_ready(c->inner.self, first, count);
	if (interval >= 0)
		end(c, interval);
}
static void watch_before_update(void *self)
{
	DdpCase *c = self;
	device_stamp(c->device, COMPUTE, WAITING);
	int interval = c->ddp ? begin_comm(c, "rest", 0) : -1;
	if (c->inner.before_update)
		c->inner.before_update(c->inner.self);
	if (interval >= 0)
		end(c, interval);
}

static void watch_after_update(void *self)
{
	DdpCase *c = self;
	if (c->inner.after_update)
		c->inner.after_update(c->inner.self);
}

static void watch_before_unit(void *self, int unit, bool backward)
{
	DdpCase *c = self;
	c->open = begin(c, COMPUTE, "unit", unit, backward);
}

static void watch_after_unit(void *self, int unit, bool backward)
{
	DdpCase *c = self;
	end(c, c->open);
}

static void set_hooks(DdpCase *c, int watch)
{
	bool units = watch & WATCH_UNITS;
	c->watch = watch;
	c->m->hooks = (Hooks){ .self = c,
		.spare_sms = c->inner.gradient_ready ? (int)c->config.ctas : 0,
		.gradient_ready = c->inner.gradient_ready ? watch_ready : NULL,
		.before_update = watch_before_update,
		.after_update = watch_after_update,
		.before_unit = units ? watch_before_unit : NULL,
		.after_unit = units ? watch_after_unit : NULL };
}

double ddp_case_ms(const DdpCase *c, int stamp)
{
	return device_stamped_ms(c->device, 0, stamp);
}
void ddp_case_begin(DdpCase *c, bool sum, int kind, double bucket_mb)
{
	const ModelConfig *mc = &c->config.model;
	Shape shape = studied_shape(mc->size, mc->context);
	int rank = comm_rank(c->comm);
	device_reset_peak(c->device);
	c->m = model_new(c->device, &shape, &policies[mc->precision],
		harness_seed + rank);
	if (mc->fusion)
		model_fuse(c->m);
	if (sum)
		c->ddp = ddp_new(c->m, c->comm, &(DdpSettings){ kind, bucket_mb,
			c->config.wire ? BF16 : FP32, c->config.sums });
	c->inner = c->m->hooks;
	c->adamw = adamw_new(c->m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	if (c->ddp)
		ddp_bind(c->ddp, &c->adamw);
	c->batch = batch_random(c->config.batch, shape.context, shape.vocab,
		harness_seed + rank);
}

void ddp_case_end(DdpCase *c)
{
	batch_free(&c->batch);
	if (c->ddp)
		ddp_free(&c->ddp);
	optimizer_free(&c->adamw);
	model_free(&c->m);
}
enum { FWD, BWD, WAIT, OPT, STEP, SUMMING, NPARTS };

static double collectives_ms(const DdpCase *c)
{
	double ms = 0;
	for (int i = 0; i < c->nintervals; i++)
		if (c->intervals[i].queue == COMM)
			ms += device_stamped_ms(c->device, c->intervals[i].from,
				c->intervals[i].to);
	return ms;
}

static void one_step(DdpCase *c, Replay *replay, double ms[NPARTS], double *loss)
{
	c->nintervals = c->nannounced = 0;
	StepTime t = replayed_step(replay, c->m, &c->adamw, &c->batch, MODE_TRAIN);
	*loss = t.loss;
	ms[FWD] = t.fwd_ms;
	ms[BWD] = device_stamped_ms(c->device, 1, WAITING);
	ms[WAIT] = device_stamped_ms(c->device, WAITING, 2);
	ms[OPT] = t.opt_ms;
	ms[STEP] = t.step_ms;
	ms[SUMMING] = collectives_ms(c);
}

/* the largest of the ranks' medians */
static double slowest(DdpCase *c, double (*ms)[NPARTS], int part, int n,
	double *sd)
{
	double *list = need(malloc(n * sizeof *list));
	for (int i = 0; i < n; i++)
		list[i] = ms[i][part];
	Stats s = stats_of(list, n);
	free(list);
	if (sd)
		*sd = comm_max(c->comm, s.sd);
	return comm_max(c->comm, s.median);
}

DdpTimes ddp_case_steps(DdpCase *c, int watch, long warmup, long steps)
{
	Replay replay = { 0 };
	int n = (int)steps;
	double (*ms)[NPARTS] = need(malloc(n * sizeof *ms)), spare[NPARTS], loss = 0;
	set_hooks(c, watch);
	comm_barrier(c->comm);
	for (long i = -warmup; i < n; i++)
		one_step(c, &replay, i < 0 ? spare : ms[i], &loss);
	replay_free(&replay, c->device);
	DdpTimes t = { .loss = loss };
	t.fwd_ms = slowest(c, ms, FWD, n, NULL);
	t.bwd_ms = slowest(c, ms, BWD, n, NULL);
	t.wait_ms = slowest(c, ms, WAIT, n, NULL);
	t.opt_ms = slowest(c, ms, OPT, n, NULL);
	t.step_ms = slowest(c, ms, STEP, n, &t.step_sd_ms);
	t.comm_ms = slowest(c, ms, SUMMING, n, NULL);
	free(ms);
	return t;
}
double ddp_case_alone(DdpCase *c, int runs)
{
	const Hooks *h = &c->inner;
	Device *d = c->device;
	double *ms = need(malloc(runs * sizeof *ms));
	for (int i = 0; i < runs; i++) {
		comm_barrier(c->comm);
		device_stamp(d, COMPUTE, 0);
		for (int k = 0; k < c->nannounced; k++)
			h->gradient_ready(h->self, c->announced[k].first,
				c->announced[k].count);
		h->before_update(h->self);
		device_stamp(d, COMPUTE, 1);
		if (h->after_update)
			h->after_update(h->self);
		ms[i] = device_stamped_ms(d, 0, 1);
	}
	double median = stats_of(ms, runs).median;
	free(ms);
	return comm_max(c->comm, median);
}
static uint64_t add_bits(uint64_t sum, const real *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t bits = 0;
		memcpy(&bits, &x[i], sizeof x[i]);
		sum = (sum ^ bits) * 0x100000001b3;
	}
	return sum;
}

static uint64_t checksum(DdpCase *c)
{
	enum { PIECE = 1 << 16, PIECES = 16 };
	real *piece = need(malloc(PIECE * sizeof *piece));
	uint64_t sum = 0xcbf29ce484222325;
	for (int i = 0; i < shape_nparameters(&c->m->shape); i++) {
		Array w = model_weight(c->m, i);
		size_t n = c->m->params[i].about.count, length = n < PIECE ? n : PIECE,
			pieces = (n + PIECE - 1) / PIECE;
		pieces = pieces > PIECES ? PIECES : pieces;
		for (size_t k = 0; k < pieces; k++) {
			size_t from = pieces > 1 ? (n - length) / (pieces - 1) * k : 0;
			array_read(c->device, piece, array_part(c->device, w, from),
				length);
			sum = add_bits(sum, piece, length);
		}
	}
	free(piece);
	return sum;
}

void ddp_case_check(DdpCase *c)
{
	int ranks = comm_ranks(c->comm), rank = comm_rank(c->comm);
	uint64_t *sums = need(calloc(ranks, sizeof *sums));
	sums[rank] = checksum(c);
	comm_gather_host(c->comm, sums, sizeof *sums);
	for (int r = 1; r < ranks; r++)
		if (sums[r] != sums[0])
			die("rank %d: the weights of ranks 0 and %d differ", rank, r);
	free(sums);
}
void ddp_case_single(Row *row, DdpCase *c, const DdpGiven *g)
{
	ddp_case_begin(c, false, 0, 0);
	DdpTimes t = ddp_case_steps(c, 0, g->warmup, g->steps);
	row_set(row, "single_ms", "%.4f", t.step_ms);
	row_set(row, "single_bwd_ms", "%.4f", t.bwd_ms);
	c->single_ms = t.step_ms;
	c->single_bwd_ms = t.bwd_ms;
}

static void set_times(Row *row, const DdpTimes *t)
{
	row_set(row, "fwd_ms", "%.4f", t->fwd_ms);
	row_set(row, "bwd_ms", "%.4f", t->bwd_ms);
	row_set(row, "wait_ms", "%.4f", t->wait_ms);
	row_set(row, "opt_ms", "%.4f", t->opt_ms);
	row_set(row, "step_ms", "%.4f", t->step_ms);
	row_set(row, "step_sd_ms", "%.4f", t->step_sd_ms);
	row_set(row, "loss", "%.6f", t->loss);
}

void ddp_case_summed(Row *row, DdpCase *c, const DdpGiven *g)
{
	ddp_case_begin(c, true, c->config.kind, c->config.bucket_mb);
	DdpTimes t = ddp_case_steps(c, 0, g->warmup, g->steps);
	set_times(row, &t);
	row_set(row, "peak_MiB", "%.1f", c->device->total_peak / 1048576.0);
	row_set(row, "buckets", "%d", ddp_buckets(c->ddp));
	double comm = ddp_case_steps(c, WATCH_COMM, 1, g->steps).comm_ms,
		alone = ddp_case_alone(c, (int)g->steps);
	row_set(row, "comm_ms", "%.4f", comm);
	row_set(row, "alone_ms", "%.4f", alone);
	row_set(row, "overlap", "%.4f", 1 - (t.step_ms - c->single_ms) / alone);
	row_set(row, "gradient_MB", "%.3f",
		c->m->count * (c->config.wire ? 2 : 4) * 1e-6);
	row_set(row, "via", "%s", comm_transport(c->comm));
	ddp_case_check(c);
}

void ddp_case_row(Row *row, const DdpConfig *config, const DdpGiven *g)
{
	DdpCase *c = ddp_case(row, config);
	ddp_case_single(row, c, g);
	ddp_case_end(c);
	ddp_case_summed(row, c, g);
	ddp_case_end(c);
	ddp_case_close(&c);
}
