/* kernel_speed: operations bound by memory, against their bound in bytes */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "bench/harness.h"
#include "bench/timing.h"
#include "model/precision.h"
#include "train/optimizer.h"
#include "model/shape.h"
#include "ops/array.h"

static int size = -1;
static long context, batch = 4, runs, parameters, footprint = 256;
static const Option options[] = {
	{ "size", OPT_CHOICE, &size, SIZES, "shapes of this model only" },
	{ "context", OPT_INT, &context, "1..65536", "tokens in a sequence" },
	{ "batch", OPT_INT, &batch, "1..4096", "sequences in a batch" },
	{ "parameters", OPT_INT, &parameters, "1..1073741824",
		"elements of the optimizer's arrays" },
	{ "footprint", OPT_INT, &footprint, "1..16384",
		"MiB that the sets of arguments take together, at least" },
	{ "runs", OPT_INT, &runs, "1..1000", "measured runs, after a few" },
	{ 0 }
};

static int count_runs(void)
{
	return runs ? (int)runs : harness_on_gpu() ? 21 : 11;
}
typedef enum {
	NONE,                  /* ends the list */
	HIDDEN, INNER,         /* (N, C), (N, F) */
	GATE_UP, QKV,          /* (N, 2F), (N, 3C) */
	SCORES, TRIANGLE,      /* (B, H, T, T); up to the diagonal */
	ATTENTION,             /* TRIANGLE, of the output of softmax */
	LOGITS, TOKENS,        /* (N, V), (N) */
	ROW, GAIN, ANGLES,     /* (N), (C), (T, D/2) */
	TABLE, ENTRIES,        /* (V, C); the rows of it that tokens name */
	WEIGHTS, SQUARES,      /* the optimizer's; not negative */
	SCALARS                /* an AdamWStep */
} Extent;

/* fp32; the row's precision; that, but absent when it is fp32 */
typedef enum { FULL, LOW, EXTRA } Kind;
enum { READ = 1, WRITE = 2, BOTH = READ | WRITE };

typedef struct Argument { Extent extent; Kind kind; int use; } Argument;
enum { NARGUMENTS = 10 };

typedef struct Sizes {
	size_t B, T, N, C, F, H, D, V;
	size_t distinct;                     /* tokens in the batch */
	size_t parameters;
} Sizes;

typedef enum { ANY, FP32_ONLY, LOW_ONLY } When;

typedef struct Operation {
	const char *name, *path;             /* "rmsnorm forward", "fused" */
	void (*queue)(Device *d, const Array *a, const Sizes *s);
	When when;
	Argument arguments[NARGUMENTS];
} Operation;
enum { FORWARD = 1 };
#define EPS 1e-5
#define QUEUES(NAME, CALL)                                      \
	static void NAME(Device *d, const Array *a, const Sizes *s) \
	{                                                           \
		ops_for(d)->CALL;                                       \
	}

QUEUES(cast, cast(d, a[0], a[1], s->N * s->F))
QUEUES(add, add(d, a[0], a[1], a[2], s->N * s->C))
QUEUES(embed, embedding_forward(d, a[0], a[1], a[2].at, s->N, s->C))
QUEUES(embed_back, embedding_backward(d, a[0], 0, a[1], a[2].at, s->N, s->C,
	s->V))
QUEUES(norm, rmsnorm_forward(d, a[0], a[1], a[2], a[3], s->N, s->C, EPS))
QUEUES(norm_back, rmsnorm_backward(d, a[0], a[1], a[2], a[3], a[4], a[5], s->N,
	s->C))
QUEUES(layernorm, layernorm_forward(d, a[0], a[1], a[2], a[3], a[4], a[5], s->N,
	s->C, EPS))
QUEUES(layernorm_back, layernorm_backward(d, a[0], a[1], a[2], a[3], a[4], a[5],
	a[6], a[7], s->N, s->C))
QUEUES(softmax, softmax_forward(d, a[0], a[1], 1 / sqrt(s->D), s->B * s->H,
	s->T))
QUEUES(softmax_back, softmax_backward(d, a[0], a[1], a[2], 1 / sqrt(s->D),
	s->B * s->H, s->T))
QUEUES(swiglu, swiglu_forward(d, a[0], a[1], a[2], s->N * s->F))
QUEUES(swiglu_back, swiglu_backward(d, a[0], a[1], a[2], a[3], a[4],
	s->N * s->F))
QUEUES(adamw, adamw(d, a[0], a[1], a[2], a[3], s->parameters, a[4].at, NULL))
QUEUES(fused_norm, fused_rmsnorm_forward(d, (NormForward){ .y = a[0],
	.rho = a[1], .sum = a[2], .x = a[3], .branch = a[4], .g = a[5],
	.eps = EPS }, s->N, s->C))
QUEUES(fused_norm_back, fused_rmsnorm_backward(d, (NormBackward){ .dsum = a[0],
	.copy = a[1], .dg = a[2], .y = a[3], .dy = a[4], .sum = a[5], .g = a[6],
	.rho = a[7] }, s->N, s->C))
QUEUES(fused_rope, fused_rope(d, a[0], a[1], a[2], s->B, s->T, s->H, s->D,
	FORWARD))
QUEUES(fused_softmax, fused_softmax_forward(d, a[0], a[1], 1 / sqrt(s->D),
	s->B * s->H, s->T))
QUEUES(fused_softmax_back, fused_softmax_backward(d, a[0], a[1], a[2],
	1 / sqrt(s->D), s->B * s->H, s->T))
QUEUES(fused_swiglu, fused_swiglu_forward(d, a[0], a[1], s->N, s->F))
QUEUES(fused_swiglu_back, fused_swiglu_backward(d, a[0], a[1], a[2], a[3], s->N,
	s->F))
QUEUES(fused_loss, fused_cross_entropy(d, a[0], a[1], a[2], a[3].at, 1.0 / s->N,
	s->N, s->V))
QUEUES(fused_adamw, fused_adamw(d, a[0], a[1], one_gradient(a[2]), a[3], a[4],
	s->parameters, a[5].at, NULL))
static const Operation operations[] = {
	{ "cast down", "eager", cast, LOW_ONLY, {
		{ INNER, LOW, WRITE }, { INNER, FULL, READ } } },
	{ "cast up", "eager", cast, LOW_ONLY, {
		{ INNER, FULL, WRITE }, { INNER, LOW, READ } } },
	{ "add", "eager", add, ANY, {
		{ HIDDEN, FULL, WRITE }, { HIDDEN, FULL, READ },
		{ HIDDEN, LOW, READ } } },
	{ "embedding forward", "eager", embed, FP32_ONLY, {
		{ HIDDEN, FULL, WRITE }, { ENTRIES, FULL, READ },
		{ TOKENS, FULL, READ } } },
	{ "embedding backward", "eager", embed_back, FP32_ONLY, {
		{ TABLE, FULL, WRITE }, { HIDDEN, FULL, READ },
		{ TOKENS, FULL, READ } } },
	{ "rmsnorm forward", "eager", norm, ANY, {
		{ HIDDEN, LOW, WRITE }, { ROW, FULL, WRITE }, { HIDDEN, FULL, READ },
		{ GAIN, FULL, READ } } },
	{ "rmsnorm forward", "fused", fused_norm, ANY, {
		{ HIDDEN, LOW, WRITE }, { ROW, FULL, WRITE }, { HIDDEN, FULL, WRITE },
		{ HIDDEN, FULL, READ }, { HIDDEN, LOW, READ }, { GAIN, FULL, READ } } },
	{ "rmsnorm backward", "eager", norm_back, ANY, {
		{ HIDDEN, FULL, BOTH }, { GAIN, FULL, BOTH }, { HIDDEN, LOW, READ },
		{ HIDDEN, FULL, READ }, { GAIN, FULL, READ }, { ROW, FULL, READ } } },
	{ "rmsnorm backward", "fused", fused_norm_back, ANY, {
		{ HIDDEN, FULL, BOTH }, { HIDDEN, EXTRA, WRITE }, { GAIN, FULL, WRITE },
		{ HIDDEN, LOW, WRITE }, { HIDDEN, LOW, READ }, { HIDDEN, FULL, READ },
		{ GAIN, FULL, READ }, { ROW, FULL, READ } } },
	{ "layernorm forward", "eager", layernorm, ANY, {
		{ HIDDEN, LOW, WRITE }, { ROW, FULL, WRITE }, { ROW, FULL, WRITE },
		{ HIDDEN, FULL, READ }, { GAIN, FULL, READ }, { GAIN, FULL, READ } } },
	{ "layernorm backward", "eager", layernorm_back, ANY, {
		{ HIDDEN, FULL, BOTH }, { GAIN, FULL, BOTH }, { GAIN, FULL, BOTH },
		{ HIDDEN, LOW, READ }, { HIDDEN, FULL, READ }, { GAIN, FULL, READ },
		{ ROW, FULL, READ }, { ROW, FULL, READ } } },
	{ "rope", "fused", fused_rope, ANY, {
		{ QKV, LOW, BOTH }, { ANGLES, FULL, READ }, { ANGLES, FULL, READ } } },
	{ "softmax forward", "eager", softmax, ANY, {
		{ SCORES, LOW, WRITE }, { TRIANGLE, LOW, READ } } },
	{ "softmax forward", "fused", fused_softmax, ANY, {
		{ SCORES, LOW, WRITE }, { TRIANGLE, LOW, READ } } },
	{ "softmax backward", "eager", softmax_back, ANY, {
		{ SCORES, LOW, WRITE }, { TRIANGLE, LOW, READ },
		{ ATTENTION, LOW, READ } } },
	{ "softmax backward", "fused", fused_softmax_back, ANY, {
		{ SCORES, LOW, WRITE }, { TRIANGLE, LOW, READ },
		{ ATTENTION, LOW, READ } } },
	{ "swiglu forward", "eager", swiglu, ANY, {
		{ INNER, LOW, WRITE }, { INNER, LOW, READ }, { INNER, LOW, READ } } },
	{ "swiglu forward", "fused", fused_swiglu, ANY, {
		{ INNER, LOW, WRITE }, { GATE_UP, LOW, READ } } },
	{ "swiglu backward", "eager", swiglu_back, ANY, {
		{ INNER, LOW, WRITE }, { INNER, LOW, WRITE }, { INNER, LOW, READ },
		{ INNER, LOW, READ }, { INNER, LOW, READ } } },
	{ "swiglu backward", "fused", fused_swiglu_back, ANY, {
		{ GATE_UP, LOW, WRITE }, { INNER, LOW, WRITE }, { INNER, LOW, READ },
		{ GATE_UP, LOW, READ } } },
	{ "cross-entropy", "fused", fused_loss, ANY, {
		{ ROW, FULL, WRITE }, { LOGITS, LOW, WRITE }, { LOGITS, LOW, READ },
		{ TOKENS, FULL, READ } } },
	{ "adamw", "eager", adamw, FP32_ONLY, {
		{ WEIGHTS, FULL, BOTH }, { WEIGHTS, FULL, READ },
		{ WEIGHTS, FULL, BOTH }, { SQUARES, FULL, BOTH },
		{ SCALARS, FULL, READ } } },
	{ "adamw", "fused", fused_adamw, ANY, {
		{ WEIGHTS, FULL, BOTH }, { WEIGHTS, EXTRA, WRITE },
		{ WEIGHTS, FULL, READ }, { WEIGHTS, FULL, BOTH },
		{ SQUARES, FULL, BOTH }, { SCALARS, FULL, READ } } },
};
enum { NOPERATIONS = sizeof operations / sizeof *operations };
static Type type_of(Argument a, Type low)
{
	return a.kind == FULL ? FP32 : low;
}

static bool absent(Argument a, Type low)
{
	return a.kind == EXTRA && low == FP32;
}

/* elements that are allocated */
static size_t length_of(Extent e, const Sizes *s)
{
	switch (e) {
	case HIDDEN: return s->N * s->C;
	case INNER: return s->N * s->F;
	case GATE_UP: return 2 * s->N * s->F;
	case QKV: return 3 * s->N * s->C;
	case SCORES: case TRIANGLE: case ATTENTION: return s->N * s->H * s->T;
	case LOGITS: return s->N * s->V;
	case TOKENS: case ROW: return s->N;
	case GAIN: return s->C;
	case ANGLES: return s->T * (s->D / 2);
	case TABLE: case ENTRIES: return s->V * s->C;
	case WEIGHTS: case SQUARES: return s->parameters;
	case SCALARS: return sizeof(AdamWStep) / sizeof(float);
	case NONE: break;
	}
	return 0;
}

/* elements that must be touched */
static size_t touched(Extent e, const Sizes *s)
{
	switch (e) {
	case TRIANGLE: case ATTENTION:
		return s->N * s->H * (s->T + 1) / 2;
	case QKV: return 2 * s->N * s->C;
	case ENTRIES: return s->distinct * s->C;
	default: return length_of(e, s);
	}
}
/* of one call at its bound; or, all: of a set of arguments */
static double bytes_of(const Device *d, const Operation *op, const Sizes *s,
	Type low, bool all)
{
	double bytes = 0;
	for (const Argument *a = op->arguments; a->extent; a++) {
		int passes = all ? 1 : a->use == BOTH ? 2 : 1;
		size_t n = all ? length_of(a->extent, s) : touched(a->extent, s);
		if (!absent(*a, low))
			bytes += (double)passes * n * d->backend->width(type_of(*a, low));
	}
	return bytes;
}
static int32_t *tokens;

static void set_angles(Device *d, Array a, size_t n, double (*f)(double))
{
	real *values = need(malloc(n * sizeof *values));
	for (size_t i = 0; i < n; i++)
		values[i] = (real)f(7 * random_uniform(harness_seed, 2, i));
	array_write(d, a, values, n);
	free(values);
}

/* what a holds before the first run; i: its index in the list */
static void set_argument(Device *d, Array a, Argument as, const Sizes *s, int i)
{
	const Ops *o = ops_for(d);
	size_t n = length_of(as.extent, s);
	if (as.extent == TOKENS) {
		device_upload(d, a.at, tokens, n * sizeof *tokens);
	} else if (as.extent == SCALARS) {
		AdamWStep step = adamw_scalars(&(OptimizerSettings){ .lr = 1e-3,
			.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.01 }, 1, 1);
		device_upload(d, a.at, &step, sizeof step);
	} else if (as.extent == ANGLES) {
		set_angles(d, a, n, i == 1 ? cos : sin);
	} else if (as.use == WRITE) {
		o->fill(d, a, NAN, n);
	} else if (as.extent == SQUARES) {
		o->fill(d, a, 0.5, n);
	} else {
		o->draw(d, a, n, 1, 4, harness_seed, i, 0);
	}
	if (as.extent == ATTENTION)
		o->softmax_forward(d, a, a, 1, s->B * s->H, s->T);
}

static void make_set(Device *d, Array *set, const Array *from,
	const Operation *op, const Sizes *s, Type low)
{
	for (int i = 0; op->arguments[i].extent; i++) {
		Argument as = op->arguments[i];
		size_t n = length_of(as.extent, s);
		set[i] = (Array){ NULL, type_of(as, low) };
		if (absent(as, low))
			continue;
		set[i] = array_new(d, n, set[i].type, MEM_TEMPORARY, op->name);
		if (from && as.extent != TOKENS && as.extent != SCALARS)
			ops_for(d)->cast(d, set[i], from[i], n);
		else
			set_argument(d, set[i], as, s, i);
	}
}

static void free_set(Device *d, Array *set)
{
	for (int i = 0; i < NARGUMENTS; i++)
		device_free(d, set[i].at);
}
static double error_of(const real *got, const real *want, size_t n)
{
	double most = 0, worst = 0;
	for (size_t i = 0; i < n; i++) {
		double off = fabs((double)got[i] - want[i]);
		if (!(off <= worst))
			worst = off;
		most = fmax(most, fabs(want[i]));
		if (isnan(off))
			return NAN;
	}
	return worst / most;
}

/* the largest error of the outputs in set, which op was run on once */
static double check_set(Device *d, const Array *set, const Operation *op,
	const Sizes *s, Type low)
{
	Device *cpu = device_open("cpu");
	Array wanted[NARGUMENTS] = { 0 };
	double worst = 0;
	make_set(cpu, wanted, NULL, op, s, low);
	op->queue(cpu, wanted, s);
	for (int i = 0; op->arguments[i].extent; i++) {
		if (!(op->arguments[i].use & WRITE) || set[i].at == NULL)
			continue;
		size_t n = length_of(op->arguments[i].extent, s);
		real *got = need(malloc(n * sizeof *got));
		array_read(d, got, set[i], n);
		double error = error_of(got, wanted[i].at, n);
		double allowed = 2 * type_spacing(set[i].type, 1) + 1e-4;
		if (!(error <= allowed))
			die("%s (%s): argument %d is wrong by %g, allowed are %g",
				op->name, op->path, i, error, allowed);
		worst = fmax(worst, error);
		free(got);
	}
	free_set(cpu, wanted);
	device_close(&cpu);
	return worst;
}
enum { MOST_SETS = 256, FEWEST_CALLS = 32 };

typedef struct Round {
	Device *device;
	const Operation *op;
	const Sizes *sizes;
	Array (*sets)[NARGUMENTS];
	int nsets, ncalls;
} Round;

static void queue_round(void *arg)
{
	const Round *t = arg;
	for (int i = 0; i < t->ncalls; i++)
		t->op->queue(t->device, t->sets[i % t->nsets], t->sizes);
}

static int count_sets(double nbytes)
{
	double n = ceil(footprint * 1048576.0 / nbytes);
	return n < 1 ? 1 : n > MOST_SETS ? MOST_SETS : (int)n;
}
static void time_operation(Row *row, Device *d, const Operation *op,
	const Sizes *s, Type low, double copy)
{
	static Array sets[MOST_SETS][NARGUMENTS];
	int nsets = count_sets(bytes_of(d, op, s, low, true)), rounds = 1;
	if (harness_on_gpu() && nsets < FEWEST_CALLS)
		rounds = (FEWEST_CALLS + nsets - 1) / nsets;
	memset(sets, 0, sizeof sets);
	make_set(d, sets[0], NULL, op, s, low);
	for (int i = 1; i < nsets; i++)
		make_set(d, sets[i], sets[0], op, s, low);
	Round round = { d, op, s, sets, nsets, 1 };
	queue_round(&round);
	if (harness_on_gpu())
		row_set(row, "error", "%.3g", check_set(d, sets[0], op, s, low));
	round.ncalls = nsets * rounds;
	Timing t = timed(d, queue_round, &round, count_runs());
	for (int i = 0; i < nsets; i++)
		free_set(d, sets[i]);
	double bytes = bytes_of(d, op, s, low, false), us = 1e3 / round.ncalls;
	double rate = bytes / (us * t.ms) * 1e-3;
	row_set(row, "op", "%s", op->name);
	row_set(row, "path", "%s", op->path);
	row_set(row, "bytes", "%.0f", bytes);
	row_set(row, "copy_us", "%.3f", bytes / copy * 1e-3);
	row_set(row, "us", "%.3f", us * t.ms);
	row_set(row, "sd_us", "%.3f", us * t.sd_ms);
	row_set(row, "min_us", "%.3f", us * t.min_ms);
	row_set(row, "GBps", "%.2f", rate);
	row_set(row, "fraction", "%.4f", rate / copy);
	row_set(row, "sets", "%d", nsets);
	if (t.kernels)
		row_set(row, "kernels", "%d", t.kernels / round.ncalls);
	row_set(row, "copy_GBps", "%.2f", copy);
	row_emit(row);
}
typedef struct Config { int size, precision; } Config;
static const Key keys[] = { KEY(Config, size, SIZES),
	KEY(Config, precision, PRECISIONS), { 0 } };

static void plan_size(Plan *plan, int which)
{
	plan_add(plan, &(Config){ which, POLICY_FP32 });
	if (harness_on_gpu())
		plan_add(plan, &(Config){ which, POLICY_BF16 });
}

static void plan(Plan *plan)
{
	static const int sizes[] = { SIZE_SMALL, SIZE_LARGE, SIZE_2_7B };
	if (size >= 0)
		plan_size(plan, size);
	for (int i = 0; i < (size >= 0 ? 0 : harness_on_gpu() ? 3 : 1); i++)
		plan_size(plan, sizes[i]);
}

static Sizes sizes_of(const Shape *shape)
{
	bool gpu = harness_on_gpu();
	Sizes s = { .B = batch, .T = context ? context : gpu ? 512 : 128,
		.C = shape->d_model, .F = shape->d_ff, .H = shape->heads,
		.V = shape->vocab, .parameters = (size_t)1 << (gpu ? 26 : 24) };
	s.N = s.B * s.T;
	s.D = s.C / s.H;
	if (parameters)
		s.parameters = parameters;
	bool *seen = need(calloc(s.V, sizeof *seen));
	tokens = need(malloc(s.N * sizeof *tokens));
	for (size_t i = 0; i < s.N; i++) {
		tokens[i] = (int32_t)(random_bits(harness_seed, 1, i) % s.V);
		s.distinct += !seen[tokens[i]];
		seen[tokens[i]] = true;
	}
	free(seen);
	return s;
}
static void run(Row *row, const void *config)
{
	const Config *c = config;
	Device *d = harness_device();
	Type low = c->precision == POLICY_BF16 ? BF16 : FP32;
	Sizes s = sizes_of(&model_sizes[c->size].shape);
	double copy = copy_GBps(d, copy_length(d), count_runs());
	for (int i = 0; i < NOPERATIONS; i++) {
		When when = operations[i].when;
		if (when == ANY || (when == FP32_ONLY) == (low == FP32))
			time_operation(row, d, &operations[i], &s, low, copy);
	}
}
static const Sweep sweeps[] = {
	{ .name = "operations", .keys = keys,
		.values = "op path bytes copy_us us sd_us min_us GBps fraction error "
			"sets kernels copy_GBps", .plan = plan, .run = run },
	{ 0 }
};

const Experiment experiment = {
	.name = "kernel_speed", .options = options, .sweeps = sweeps,
	.about = "operations bound by memory, against their bound in bytes",
	.cpu_scale = "small (one model, context 128, a quarter of the parameters, "
		"fp32)",
};
