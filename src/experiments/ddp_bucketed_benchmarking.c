/* ddp_bucketed_benchmarking: gradients summed bucket by bucket, predicted and
 * measured */
#include <math.h>
#include <stdlib.h>

#include "base/buckets.h"
#include "base/error.h"
#include "base/fit.h"
#include "cases/ddp_plan.h"
#include "cases/ddp_steps.h"
#include "estimate/schedule.h"
#include "ops/ops.h"

static DdpGiven given = DDP_GIVEN;
static double bucket_mb;
static const Option options[] = { DDP_OPTIONS(given),
	BUCKET_OPTION(&bucket_mb, "1e6 bytes on the wire, at most; 0: several"),
	{ 0 } };

// list bucket sizes, model sizes and transports
static const double sizes_mb[] = { 1, 5, 10, 50, 100, 500, 1000 };
enum { NBUCKETS = sizeof sizes_mb / sizeof *sizes_mb };
enum { MIDDLE_MB = 50, EXCHANGED_MB = 100 };     /* where one size is taken */

static double scaled_mb(double mb)
{
	return harness_on_gpu() ? mb : mb / 100;
}

static void plan_sizes_of_buckets(Plan *plan, DdpConfig c, int step)
{
	c.kind = DDP_BUCKETED;
	for (int i = 0; i < NBUCKETS; i += bucket_mb > 0 ? NBUCKETS : step) {
		c.bucket_mb = bucket_mb > 0 ? bucket_mb : scaled_mb(sizes_mb[i]);
		ddp_plan(plan, &given, c);
	}
}

static void settle_bucket_sizes(void)
{
	ddp_given_settle(&given);
	if (bucket_mb < 0)
		usage_error("--bucket-mb %g: expected 0 or more", bucket_mb);
}

// choose the configuration of a sweep
static DdpConfig default_config(int size, int precision, Type wire)
{
	return (DdpConfig){ { given.size >= 0 ? given.size : size,
		.precision = given.precision >= 0 ? given.precision : precision },
		.wire = wire };
}

// plan buckets summed by collectives or by the update
/* whether the update sums gradients, where nothing else is asked for */
static bool exchanges(void)
{
	return harness_on_gpu() && given.fusion == FUSION_FUSED
		&& given.ranks <= MOST_GRADIENTS;
}

static void plan_sums(Plan *plan, bool exchange)
{
	bool gpu = harness_on_gpu();
	for (Type wire = FP32; wire <= BF16; wire++) {
		DdpConfig c = default_config(gpu ? SIZE_XL : SIZE_MEDIUM,
			gpu ? POLICY_BF16 : POLICY_FP32, wire);
		c.sums = exchange ? SUMS_BY_OPTIMIZER : SUMS_BY_COMM;
		plan_sizes_of_buckets(plan, c, gpu ? 1 + exchange
			: wire == FP32 ? 1 : 3);
	}
}

static void plan_buckets(Plan *plan)
{
	settle_bucket_sizes();
	if (given.sums != SUMS_BY_OPTIMIZER)
		plan_sums(plan, false);
	if (given.sums == SUMS_BY_OPTIMIZER || (given.sums < 0 && exchanges()))
		plan_sums(plan, true);
}

// plan sizes of models, and slow transports
/* w = 0, 1: bf16, with fp32 and with bf16 on the wire; 2: fp32 */
static DdpConfig model_config(int size, int w)
{
	bool gpu = harness_on_gpu();
	return (DdpConfig){ { size, .precision = w < 2 ? POLICY_BF16
		: !gpu && given.precision >= 0 ? given.precision : POLICY_FP32 },
		.kind = DDP_BUCKETED,
		.wire = !gpu ? ddp_wire(&given) : w == 1 ? BF16 : FP32,
		.bucket_mb = bucket_mb > 0 ? bucket_mb
			: scaled_mb(exchanges() ? EXCHANGED_MB : MIDDLE_MB),
		.sums = exchanges() ? SUMS_BY_OPTIMIZER : SUMS_BY_COMM };
}

static void plan_models(Plan *plan)
{
	bool gpu = harness_on_gpu();
	settle_bucket_sizes();
	for (int s = 0; s < NSIZES; s++)
		for (int w = gpu ? 0 : 2; w < 3; w++)
			if (given.size == s || (s < NTRAINED && (gpu || s % 2 == 0)))
				ddp_plan(plan, &given, model_config(s, w));
}

/* transports by way of the host's memory, which is a slow link to a GPU */
static void plan_transports(Plan *plan)
{
	bool gpu = harness_on_gpu();
	settle_bucket_sizes();
	DdpConfig c = default_config(SIZE_SMALL, gpu ? POLICY_BF16 : POLICY_FP32,
		given.wire > 0);
	c.transport = given.transport ? TRANSPORT_AUTO : gpu ? TRANSPORT_RING
		: TRANSPORT_OWNER;
	plan_sizes_of_buckets(plan, c, gpu ? 1 : 2);
}

// list blocks of collectives
typedef struct CtasConfig {
	DdpConfig ddp;
	long spare_sms;                  /* multiprocessors that matmuls leave */
} CtasConfig;
static const Key ctas_keys[] = { DDP_KEYS, KEY(CtasConfig, spare_sms), { 0 } };

static void plan_blocks(Plan *plan, DdpConfig ddp, long ctas, long spare)
{
	if (!ddp_settle(&ddp, &given) || (given.ctas >= 0 && given.ctas != ctas))
		return;
	ddp.ctas = ctas;
	plan_add(plan, &(CtasConfig){ ddp, spare });
}

// plan blocks and spare multiprocessors
static void plan_ctas(Plan *plan)
{
	static const struct { long ctas, spare; } tried[] = { { 0, 0 }, { 2, 2 },
		{ 4, 4 }, { 8, 0 }, { 8, 8 }, { 12, 12 }, { 16, 0 }, { 16, 16 },
		{ 24, 24 } };
	bool gpu = harness_on_gpu();
	int only = given.transport, first = only || !gpu ? only : TRANSPORT_NCCL,
		last = only || !gpu ? only : TRANSPORT_SYMMETRIC;
	settle_bucket_sizes();
	for (Type wire = FP32; wire <= (gpu ? BF16 : FP32); wire++) {
		DdpConfig c = default_config(gpu ? SIZE_XL : SIZE_SMALL,
			gpu ? POLICY_BF16 : POLICY_FP32, gpu ? wire : ddp_wire(&given));
		c.kind = DDP_BUCKETED;
		c.bucket_mb = bucket_mb > 0 ? bucket_mb : scaled_mb(MIDDLE_MB);
		for (c.transport = first; c.transport <= last; c.transport++)
			for (size_t i = 0; i < (gpu ? sizeof tried / sizeof *tried : 1);
				i++)
				if (c.transport != TRANSPORT_NCCL || i % 4 == 0)
					plan_blocks(plan, c, tried[i].ctas, tried[i].spare);
	}
}

// time a step with spare multiprocessors
static void run_ctas(Row *row, const void *config)
{
	const CtasConfig *c = config;
	if (!harness_on_gpu()) {
		row_skip(row, "collectives have no blocks on a CPU");
		return;
	}
	DdpCase *run = ddp_case(row, &c->ddp);
	run->spare_sms = (int)c->spare_sms;
	ddp_case_single(row, run);
	ddp_case_end(run);
	ddp_case_summed(row, run);
	ddp_case_end(run);
	ddp_case_close(&run);
}

// fit the link
typedef struct FittedLink { double o_ms, bytes_per_ms; } FittedLink;

// time one collective of a step
static double collective_ms(DdpCase *c, Array x, size_t n)
{
	enum { RUNS = 5 };
	double ms[RUNS];
	for (int i = -2; i < RUNS; i++) {
		comm_barrier(c->comm);
		device_stamp(c->device, COMM, 0);
		(c->config.sums == SUMS_BY_OPTIMIZER ? comm_exchange
			: comm_all_reduce)(c->comm, x, n, "trial", 0);
		device_stamp(c->device, COMM, 1);
		double took = device_stamped_ms(c->device, 0, 1);
		if (i >= 0)
			ms[i] = took;
	}
	return comm_max(c->comm, stats_of(ms, RUNS).median);
}

// fit two constants to several sizes
static FittedLink fit_link(DdpCase *c)
{
	enum { SIZES_TRIED = 6 };
	Type type = c->config.wire;
	size_t most = harness_on_gpu() ? 1 << 25 : 1 << 20;
	Array x = c->config.sums == SUMS_BY_OPTIMIZER
		? comm_parts(c->comm, most, type, MEM_TEMPORARY,
			"trial").at[comm_rank(c->comm)]
		: comm_array(c->comm, most, type, MEM_TEMPORARY, "trial");
	ops_for(c->device)->draw(c->device, x, most, 1, 4, 1, 1, 0);
	device_wait(c->device, COMM, device_event(c->device, COMPUTE));
	double a[SIZES_TRIED][MOST_UNKNOWN] = { { 0 } }, t[SIZES_TRIED],
		fitted[MOST_UNKNOWN];
	for (int i = 0; i < SIZES_TRIED; i++) {
		size_t n = most >> 2 * i;
		a[i][0] = 1, a[i][1] = (double)n * type_size(type);
		t[i] = collective_ms(c, x, n);
	}
	fit_positive(SIZES_TRIED, 2, a, t, fitted);
	return (FittedLink){ fitted[0], 1 / fmax(fitted[1], 1e-15) };
}

// find when gradients are there
/* (units), ms: when each unit's gradients are there after the backward pass
 * began, in a pass of bwd_ms; the caller frees it */
static double *ready_times(DdpCase *c, double bwd_ms)
{
	int units = shape_nunits(&c->m->shape);
	double *ready = need(calloc(units, sizeof *ready)), last = 0;
	ddp_case_steps(c, WATCH_UNITS, 2, 1);
	double start = ddp_case_ms(c, 1);
	for (int i = 0; i < c->nintervals; i++) {
		const Interval *v = &c->intervals[i];
		if (!v->backward)
			continue;
		ready[v->number] = ddp_case_ms(c, v->to) - start;
		last = fmax(last, ready[v->number]);
	}
	for (int u = 0; u < units; u++)
		ready[u] *= bwd_ms / last;
	return ready;
}

// find how work on both queues stretches
static double stretch_factor(double both, double longer)
{
	enum { MOST = 4 };
	if (both <= 0 || longer <= 0)
		return 1;
	return longer < both * (MOST - 1) / MOST ? both / (both - longer) : MOST;
}

// train with buckets of one size
static QueueStretch calibrate(DdpCase *c)
{
	ddp_case_begin(c, true, DDP_BUCKETED, scaled_mb(25));
	DdpTimes t = ddp_case_steps(c, WATCH_COMM, c->config.warmup,
		c->config.steps);
	double alone = ddp_case_alone(c, (int)c->config.steps),
		both = fmin(t.comm_ms - t.wait_ms, t.bwd_ms);
	ddp_case_end(c);
	return (QueueStretch){ stretch_factor(both, t.bwd_ms - c->single_bwd_ms),
		stretch_factor(both, t.comm_ms - alone) };
}

// form the buckets of a step
typedef struct SimulatedBucket { double ready_ms, nbytes; } SimulatedBucket;

/* buckets: room for as many as there are parameters; most: elements that fit into
 * one, of `width` bytes each. Returns how many buckets there are */
static int form_buckets(const Shape *s, const double *ready, double most,
	double width, SimulatedBucket *buckets)
{
	BucketCutter cutter = { .most = most };
	int n = 0;
	for (int u = shape_nunits(s) - 1; u >= 0; u--) {
		Unit unit = shape_unit(s, u);
		for (int i = unit.first + unit.count - 1; i >= unit.first; i--) {
			Parameter p = shape_parameter(s, i);
			n += bucket_begins(&cutter, p.offset, p.count);
			buckets[n - 1] = (SimulatedBucket){ ready[u],
				(cutter.end - p.offset) * width };
		}
	}
	return n;
}

// simulate the queue of buckets
/* ms from the start of the backward pass until both queues are done */
static double simulate(const SimulatedBucket *b, int n, double bwd_ms,
	FittedLink link, QueueStretch stretch)
{
	QueueSchedule s = { 0 };
	double done = 0;                        /* of the pass */
	for (int i = 0; i < n; i++) {
		int ready = schedule_add(&s, COMPUTE_QUEUE, fmax(b[i].ready_ms - done,
			0), -1, -1);
		schedule_add(&s, COMM_QUEUE, link.o_ms + b[i].nbytes
			/ link.bytes_per_ms, ready, -1);
		done = fmax(done, b[i].ready_ms);
	}
	schedule_add(&s, COMPUTE_QUEUE, fmax(bwd_ms - done, 0), -1, -1);
	double ms = schedule_run(&s, stretch);
	schedule_free(&s);
	return ms;
}

// predict a step by both stretches
static void predict(Row *row, DdpCase *c, const double *ready, FittedLink link,
	QueueStretch s)
{
	Shape shape = studied_shape(c->config.model.size, c->config.model.context);
	SimulatedBucket *buckets
		= need(malloc(shape_nparameters(&shape) * sizeof *buckets));
	double width = type_size(c->config.wire);
	int n = form_buckets(&shape, ready, c->config.bucket_mb * 1e6 / width,
		width, buckets);
	double rest = c->single_ms - c->single_bwd_ms,
		ideal = simulate(buckets, n, c->single_bwd_ms, link,
		(QueueStretch){ 1, 1 }),
		real_one = simulate(buckets, n, c->single_bwd_ms, link, s);
	row_set(row, "ideal_ms", "%.4f", rest + ideal);
	row_set(row, "simulated_ms", "%.4f", rest + real_one);
	row_set(row, "formed", "%d", n);
	free(buckets);
}

// measure the link, predict, and measure the step
static void run_buckets(Row *row, const void *config)
{
	DdpCase *c = ddp_case(row, config);
	FittedLink link = fit_link(c);
	ddp_case_single(row, c);
	double *ready = ready_times(c, c->single_bwd_ms);
	ddp_case_end(c);
	QueueStretch s = calibrate(c);
	predict(row, c, ready, link, s);
	row_set(row, "o_us", "%.3f", link.o_ms * 1e3);
	row_set(row, "w_GBps", "%.4f", link.bytes_per_ms * 1e-6);
	row_set(row, "stretch", "%.4f", s.compute);
	row_set(row, "comm_stretch", "%.4f", s.comm);
	free(ready);
	ddp_case_summed(row, c);
	ddp_case_end(c);
	ddp_case_close(&c);
}

// describe the sweeps of buckets to the harness
const Experiment experiment = {
	.about = "times steps that sum gradients bucket by bucket",
	.options = options, .cpu_scale = "small (widths, depths, vocabulary divided "
		"by 8, contexts by 16, buckets by 100)",
	.sweeps = SWEEPS(
		{ "buckets", ddp_keys, plan_buckets, run_buckets,
			.ranks = ddp_config_ranks },
		DDP_SWEEP("sizes", plan_models),
		{ "transports", ddp_keys, plan_transports, run_buckets,
			.ranks = ddp_config_ranks },
		{ "ctas", ctas_keys, plan_ctas, run_ctas,
			.ranks = ddp_config_ranks }),
};
