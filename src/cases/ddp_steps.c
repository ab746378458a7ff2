#include "cases/ddp_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "ops/array.h"

// count the ranks of a configuration
int ddp_config_ranks(const void *config)
{
	return (int)((const DdpConfig *)config)->ranks;
}

// open and close a case
Comm *ddp_comm(Row *row, Device *d, const DdpConfig *config)
{
	return harness_comm(row, d, &(CommSettings){
		.transport = transport_names[config->transport],
		.pushes = config->sums == SUMS_BY_OPTIMIZER,
		.ctas = (int)config->ctas });
}

DdpCase *ddp_case_over(Device *device, Comm *comm, const DdpConfig *config)
{
	DdpCase *c = need(calloc(1, sizeof *c));
	c->config = *config;
	c->spare_sms = (int)config->ctas;
	c->device = device;
	c->comm = comm;
	c->intervals = need(malloc(NSTAMPS * sizeof *c->intervals));
	c->calls = need(malloc(NSTAMPS * sizeof *c->calls));
	return c;
}

// open a case with its communicator, and close it
DdpCase *ddp_case(Row *row, const DdpConfig *config)
{
	Device *d = harness_device();
	return ddp_case_over(d, ddp_comm(row, d, config), config);
}

void ddp_case_close(DdpCase **c)
{
	comm_close(&(*c)->comm);
	device_close(&(*c)->device);
	free((*c)->intervals);
	free((*c)->calls);
	free(*c);
	*c = NULL;
}

// watch a step
enum { WAITING = 4, FIRST_STAMP };

// stamp the ends of an interval
static int begin(DdpCase *c, Queue queue, const char *class, const char *name,
	const HookCall *a)
{
	int from = FIRST_STAMP + 2 * c->nintervals;
	if (from + 1 >= NSTAMPS)
		die("a step has more intervals than there are stamps");
	device_stamp(c->device, queue, from);
	c->intervals[c->nintervals] = (Interval){ queue, class, name, a->first,
		a->backward, from, from + 1 };
	return c->nintervals++;
}

static void end(DdpCase *c, int interval)
{
	const Interval *i = &c->intervals[interval];
	device_stamp(c->device, i->queue, i->to);
}

// find out what a call has sent
/* the collective for which most bytes were queued since; NULL: none was queued */
static const char *collective_since(const DdpCase *c,
	const double before[NCOLLECTIVES])
{
	const char *class = NULL;
	double most = 0;
	for (int kind = 0; kind < NCOLLECTIVES; kind++) {
		double nbytes = comm_sent(c->comm, kind) - before[kind];
		class = nbytes > most ? collective_names[kind] : class;
		most = nbytes > most ? nbytes : most;
	}
	return class;
}

static void read_sent(const DdpCase *c, double sent[NCOLLECTIVES])
{
	for (int kind = 0; kind < NCOLLECTIVES; kind++)
		sent[kind] = comm_sent(c->comm, kind);
}

// call a hook and watch what it does
static void watch_wait(void *self, bool begins)
{
	DdpCase *c = self;
	if (begins)
		c->wait = begin(c, COMPUTE, "wait", c->watched_name, c->watched);
	else
		end(c, c->wait);
}

static void watch_call(DdpCase *c, const char *name, const HookCall *call)
{
	double before[NCOLLECTIVES];
	if (c->ncalls == NSTAMPS)
		die("a step calls more hooks than %d", NSTAMPS);
	c->calls[c->ncalls++] = *call;
	if ((c->watch & WATCH_COMM) == 0) {
		hooks_call(&c->inner, call);
		return;
	}
	device_wait(c->device, COMM, device_event(c->device, COMPUTE));
	read_sent(c, before);
	int sends = begin(c, COMM, NULL, name, call);
	c->watched = call;
	c->watched_name = name;
	c->device->watch_wait = watch_wait;
	c->device->wait_watcher = c;
	hooks_call(&c->inner, call);
	c->device->watch_wait = NULL;
	end(c, sends);
	c->intervals[sends].class = collective_since(c, before);
}

static void watch_hook(void *self, const HookCall *call)
{
	static const char *const names[] = { [BEFORE_UNIT] = "before",
		[AFTER_UNIT] = "after", [GRADIENT_READY] = "gradients",
		[BEFORE_UPDATE] = "rest", [AFTER_UPDATE] = "weights" };
	DdpCase *c = self;
	bool units = c->watch & WATCH_UNITS;
	HookCall a = *call;
	a.backward |= a.kind == BEFORE_UPDATE;
	if (a.kind == BEFORE_UPDATE)
		device_stamp(c->device, COMPUTE, WAITING);
	if (a.kind == AFTER_UNIT && units)
		end(c, c->open);
	if (hooks_have(&c->inner, a.kind))
		watch_call(c, names[a.kind], &a);
	if (a.kind == BEFORE_UNIT && units)
		c->open = begin(c, COMPUTE, a.backward ? "backward" : "forward", "unit",
			&a);
	if (a.kind == BEFORE_UPDATE)
		c->update_at = c->device->nlog;
}

// watch units and install the hooks
static void set_hooks(DdpCase *c, int watch)
{
	bool units = watch & WATCH_UNITS;
	const Hooks *inner = &c->inner;
	const bool wanted[] = { [BEFORE_UNIT] = units || inner->before_unit,
		[AFTER_UNIT] = units || inner->after_unit,
		[GRADIENT_READY] = inner->gradient_ready, [BEFORE_UPDATE] = true,
		[AFTER_UPDATE] = true };
	c->watch = watch;
	c->listener = (HookListener){ c, watch_hook };
	c->m->hooks = hooks_heard_by(&c->listener, wanted);
	if (inner->gradient_ready || inner->after_unit)
		c->m->hooks.spare_sms = c->spare_sms;
}

void ddp_case_hook(DdpCase *c)
{
	c->ncalls = 0;
	set_hooks(c, 0);
}

double ddp_case_ms(const DdpCase *c, int stamp)
{
	return device_stamped_ms(c->device, 0, stamp);
}

// begin and end training
void ddp_case_model(DdpCase *c, bool bare)
{
	const ModelConfig *mc = &c->config.model;
	Shape shape = studied_shape(mc->size, mc->context);
	int rank = comm_rank(c->comm);
	device_reset_peak(c->device);
	c->m = bare ? model_new_bare(c->device, &shape,
		&policies[mc->precision], harness_seed) : model_new(c->device,
		&shape, &policies[mc->precision], harness_seed + rank);
	if (mc->fusion)
		model_fuse(c->m);
	model_follow(c->m, &mc->plan);
	c->batch = batch_random(c->config.batch, shape.context, shape.vocab,
		harness_seed + rank);
}

void ddp_case_train(DdpCase *c, Optimizer *optimizer)
{
	c->inner = c->m->hooks;
	c->optimizer = optimizer ? optimizer : &c->adamw;
	if (optimizer == NULL)
		c->adamw = adamw_new(c->m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
}

// begin training with gradients that are summed
void ddp_case_begin(DdpCase *c, bool sum, int kind, double bucket_mb)
{
	ddp_case_model(c, false);
	if (sum)
		c->ddp = ddp_new(c->m, c->comm, &(DdpSettings){ kind, bucket_mb,
			c->config.wire, c->config.sums == SUMS_BY_OPTIMIZER });
	ddp_case_train(c, NULL);
	if (c->ddp)
		ddp_bind(c->ddp, &c->adamw);
}

void ddp_case_end(DdpCase *c)
{
	batch_free(&c->batch);
	if (c->ddp)
		ddp_free(&c->ddp);
	if (c->optimizer == &c->adamw)
		optimizer_free(&c->adamw);
	model_free(&c->m);
}

// time steps part by part
enum { FWD, BWD, WAIT, OPT, STEP, PERIOD, SUMMING, BLOCKED, NPARTS };

/* ms of all collectives; waits: of all waits of the compute queue for them */
static double watched_ms(const DdpCase *c, bool waits)
{
	double ms = 0;
	for (int i = 0; i < c->nintervals; i++) {
		const Interval *v = &c->intervals[i];
		if (v->class && (waits ? strcmp(v->class, "wait") == 0
			: v->queue == COMM))
			ms += device_stamped_ms(c->device, v->from, v->to);
	}
	return ms;
}

// take one step and read its parts
static void one_step(DdpCase *c, Replay *replay, double ms[NPARTS], double *loss)
{
	double before[NCOLLECTIVES];
	c->nintervals = c->ncalls = 0;
	read_sent(c, before);
	StepTime t = c->unrecorded ? timed_step(c->m, c->optimizer, &c->batch,
		MODE_TRAIN) : replayed_step(replay, c->m, c->optimizer, &c->batch,
		MODE_TRAIN);
	read_sent(c, c->sent);
	for (int kind = 0; kind < NCOLLECTIVES; kind++)
		c->sent[kind] -= before[kind];
	*loss = t.loss;
	ms[FWD] = t.fwd_ms;
	ms[BWD] = device_stamped_ms(c->device, 1, WAITING);
	ms[WAIT] = device_stamped_ms(c->device, WAITING, 2);
	ms[OPT] = t.opt_ms;
	ms[STEP] = t.step_ms;
	if (c->watch & WATCH_COMM) {
		ms[SUMMING] = watched_ms(c, false);
		ms[BLOCKED] = watched_ms(c, true);
	}
}

// take the slowest rank's median of each part
/* the largest over the ranks of the median of a part */
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

// time many steps
DdpTimes ddp_case_steps(DdpCase *c, int watch, long warmup, long steps)
{
	Replay replay = { 0 };
	int n = (int)steps;
	double (*ms)[NPARTS] = need(calloc(n, sizeof *ms)), spare[NPARTS], loss = 0;
	set_hooks(c, watch);
	comm_barrier(c->comm);
	double before = clock_ms();
	for (long i = -warmup; i < n; i++) {
		double *parts = i < 0 ? spare : ms[i];
		one_step(c, &replay, parts, &loss);
		double now = clock_ms();
		parts[PERIOD] = now - before;
		before = now;
	}
	replay_free(&replay, c->device);
	// reduce the parts over steps and ranks
	DdpTimes t = { .loss = loss };
	t.fwd_ms = slowest(c, ms, FWD, n, NULL);
	t.bwd_ms = slowest(c, ms, BWD, n, NULL);
	t.wait_ms = slowest(c, ms, WAIT, n, NULL);
	t.opt_ms = slowest(c, ms, OPT, n, NULL);
	t.step.median = slowest(c, ms, STEP, n, &t.step.sd);
	t.period_ms = slowest(c, ms, PERIOD, n, NULL);
	t.comm_ms = slowest(c, ms, SUMMING, n, NULL);
	t.blocked_ms = slowest(c, ms, BLOCKED, n, NULL);
	free(ms);
	return t;
}

// time the collectives alone
double ddp_case_alone(DdpCase *c, int runs)
{
	Device *d = c->device;
	double *ms = need(malloc(runs * sizeof *ms));
	for (int i = 0; i < runs; i++) {
		comm_barrier(c->comm);
		device_stamp(d, COMPUTE, 0);
		for (int k = 0; k < c->ncalls; k++)
			hooks_call(&c->inner, &c->calls[k]);
		device_wait(d, COMPUTE, device_event(d, COMM));
		device_stamp(d, COMPUTE, 1);
		ms[i] = device_stamped_ms(d, 0, 1);
	}
	double median = stats_of(ms, runs).median;
	free(ms);
	return comm_max(c->comm, median);
}

// compare the weights of all ranks
static uint64_t checksum(DdpCase *c)
{
	enum { PIECE = 1 << 16, PIECES = 16 };
	real *piece = need(malloc(PIECE * sizeof *piece));
	uint64_t sum = HASH_START;
	for (int i = 0; i < shape_nparameters(&c->m->shape); i++) {
		Array w = model_weight(c->m, i);
		size_t n = c->m->params[i].about.count, length = n < PIECE ? n : PIECE,
			pieces = (n + PIECE - 1) / PIECE;
		pieces = pieces > PIECES ? PIECES : pieces;
		for (size_t k = 0; k < pieces; k++) {
			size_t from = pieces > 1 ? (n - length) / (pieces - 1) * k : 0;
			array_read(c->device, piece, array_part(c->device, w, from),
				length);
			sum = hash_bytes(sum, piece, length * sizeof *piece);
		}
	}
	free(piece);
	return sum;
}

// gather the checksums of all ranks
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

// fill a row of data parallelism
void ddp_case_single(Row *row, DdpCase *c)
{
	ddp_case_begin(c, false, 0, 0);
	DdpTimes t = ddp_case_steps(c, 0, c->config.warmup, c->config.steps);
	row_set(row, "single_ms", "%.4f", t.step.median);
	row_set(row, "single_bwd_ms", "%.4f", t.bwd_ms);
	c->single_ms = t.step.median;
	c->single_bwd_ms = t.bwd_ms;
}

void ddp_case_set_times(Row *row, const DdpTimes *t)
{
	row_set_time(row, "step", t->step);
	row_set(row, "fwd_ms", "%.4f", t->fwd_ms);
	row_set(row, "bwd_ms", "%.4f", t->bwd_ms);
	row_set(row, "wait_ms", "%.4f", t->wait_ms);
	row_set(row, "opt_ms", "%.4f", t->opt_ms);
	row_set(row, "loss", "%.6f", t->loss);
}

// time training with sums, and its collectives alone
void ddp_case_summed(Row *row, DdpCase *c)
{
	ddp_case_begin(c, true, c->config.kind, c->config.bucket_mb);
	DdpTimes t = ddp_case_steps(c, 0, c->config.warmup, c->config.steps);
	ddp_case_set_times(row, &t);
	row_set(row, "peak_MiB", "%.1f", c->device->total_peak / 1048576.0);
	row_set(row, "buckets", "%d", ddp_buckets(c->ddp));
	double comm = ddp_case_steps(c, WATCH_COMM, 1, c->config.steps).comm_ms,
		alone = ddp_case_alone(c, (int)c->config.steps);
	row_set(row, "comm_ms", "%.4f", comm);
	row_set(row, "alone_ms", "%.4f", alone);
	row_set(row, "overlap", "%.4f", 1 - (t.step.median - c->single_ms) / alone);
	row_set(row, "gradient_MB", "%.3f",
		c->m->count * type_size(c->config.wire) * 1e-6);
	row_set(row, "via", "%s", comm_transport(c->comm));
	ddp_case_check(c);
}

// fill a whole row
void ddp_case_row(Row *row, const void *config)
{
	DdpCase *c = ddp_case(row, config);
	ddp_case_single(row, c);
	ddp_case_end(c);
	ddp_case_summed(row, c);
	ddp_case_end(c);
	ddp_case_close(&c);
}

const Key ddp_keys[] = { DDP_KEYS, { 0 } };
