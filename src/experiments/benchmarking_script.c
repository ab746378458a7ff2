#define _GNU_SOURCE
/* benchmarking_script: times forward, backward and optimizer of a model; one
 * configuration or a sweep */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cblas.h>
#include <omp.h>

#include "base/error.h"
#include "base/stats.h"
#include "bench/training.h"
#include "cases/op_classes.h"
#include "estimate/model_plan.h"
#include "jit/jit.h"

// state the options of the benchmark
/* -1 and zeros where the command line says nothing */
static int size = -1;
static Shape given;
static long context = 128, batch = 4, warmup = 5, steps = 10;
static int mode = MODE_TRAIN, precision, fusion = FUSION_FUSED,
	attention = ATTENTION_FLASH, norm;
#define MODEL_NORMS_OF(FIRST, NEXT) \
	FIRST(RMSNORM, "rmsnorm") NEXT(LAYERNORM, "layernorm")
enum { CHOICE_IDS(MODEL_NORMS_OF) };

// list the options of the benchmark
static const Option options[] = {
	SIZE_OPTION_FOR(&size, "one model, not scaled down"),
	D_MODEL_OPTION(&given.d_model, "1..65536", "width of the model"),
	D_FF_OPTION(&given.d_ff, "1..262144",
		"width of the feed-forward layer"),
	LAYERS_OPTION(&given.layers, "1..1024", "number of blocks"),
	HEADS_OPTION(&given.heads, "1..1024", "number of heads"),
	VOCAB_OPTION(&given.vocab, "1..16777216", "size of the vocabulary"),
	CONTEXT_OPTION_IN(&context, "1..1048576", "tokens in a sequence"),
	BATCH_OPTION_IN(&batch, "1..65536", "sequences in a batch"),
	{ "mode", OPT_CHOICE, &mode, MODES, "the phases to run" },
	WARMUP_OPTION_IN(&warmup, "0..1000000",
		"steps before the measured ones"),
	STEPS_OPTION_IN(&steps, "1..1000000", "measured steps"),
	PRECISION_OPTION_FOR(&precision,
		"fp32, or mixed precision with a low format"),
	FUSION_OR_JIT_OPTION(&fusion),
	ATTENTION_OPTION(&attention),
	{ "norm", OPT_CHOICE, &norm, CHOICES(MODEL_NORMS_OF),
		"the norm of the model; layernorm has no fused path" },
	{ 0 }
};

// choose the shape
static bool one_model(void)
{
	return size >= 0 || given.d_model || given.d_ff || given.layers
		|| given.heads || given.vocab;
}

enum { CUSTOM = NSIZES };

// put a shape together
/* the size of the one model that the command line gives, or other */
static int size_or(int other)
{
	return size >= 0 ? size : one_model() ? CUSTOM : other;
}

static Shape choose_shape(int which)
{
	Shape s = which == CUSTOM ? (Shape){ .vocab = 10000, .theta = 10000 }
		: model_sizes[which].shape;
	if (!one_model() && !harness_on_gpu())
		s = scaled_down(s);
	const struct { long *to, from; } overrides[] = {
		{ &s.d_model, given.d_model }, { &s.d_ff, given.d_ff },
			{ &s.layers, given.layers }, { &s.heads, given.heads },
		{ &s.vocab, given.vocab },
	};
	for (size_t i = 0; i < sizeof overrides / sizeof *overrides; i++)
		if (overrides[i].from)
			*overrides[i].to = overrides[i].from;
	s.context = 1;
	const char *error = shape_split_heads(&s);
	if (error == NULL)
		error = shape_error(&s);
	if (error)
		usage_error("no such model: %s (give --size, or --d-model, --d-ff, "
			"--layers and --heads)", error);
	return s;
}

// list the configurations
typedef struct ScriptConfig {
	int size;                        /* or CUSTOM */
	long context, batch;
	int precision, fusion;
	long warmup;
} ScriptConfig;
#define SIZES_AND_CUSTOM SIZES "|custom"
static const Key keys[] = { KEY(ScriptConfig, size, SIZES_AND_CUSTOM),
	KEY(ScriptConfig, context), KEY(ScriptConfig, batch),
	KEY(ScriptConfig, precision, PRECISIONS),
	KEY(ScriptConfig, fusion, FUSIONS_AND_JIT), { 0 } };

// plan grids of sizes and contexts
static void plan_grid(Plan *plan, int precision, int path)
{
	for (int i = 0; i < studied_sizes(); i++)
		for (int c = 0; c < NCONTEXTS; c++)
			plan_add(plan, &(ScriptConfig){ i, studied_context(c), batch,
				precision, path, 0 });
}

static void plan_one(Plan *plan)
{
	int which = size_or(CUSTOM);
	/* refuses impossible shapes before anything runs */
	choose_shape(which);
	if (norm == LAYERNORM && fusion == FUSION_FUSED)
		usage_error("--norm layernorm has no fused path: give --fusion eager");
	plan_add(plan, &(ScriptConfig){ which, context, batch, precision, fusion,
		0 });
}

static void plan_sizes(Plan *plan)
{
	if (one_model()) {
		plan_one(plan);
	} else if (harness_on_gpu()) {
		for (int path = FUSION_EAGER; path <= FUSION_FUSED; path++)
			plan_grid(plan, POLICY_FP32, path);
		for (int path = FUSION_EAGER; path <= FUSION_FUSED; path++)
			plan_grid(plan, POLICY_BF16, path);
	} else {
		plan_grid(plan, precision, FUSION_EAGER);
	}
}

// plan forward passes and warm-ups
/* of the size that does not train: its forward pass fits, and keeps nothing */
static void plan_forward(Plan *plan)
{
	bool gpu = harness_on_gpu();
	if (one_model())
		plan_one(plan);
	for (int c = 0; c < NCONTEXTS - !gpu && !one_model(); c++)
		for (int p = 0; p <= gpu; p++)
			plan_add(plan, &(ScriptConfig){ SIZE_10B, studied_context(c), batch,
				p ? POLICY_BF16 : POLICY_FP32, FUSION_FUSED, 0 });
}

static const Key warmup_keys[] = { KEY(ScriptConfig, size, SIZES_AND_CUSTOM),
	KEY(ScriptConfig, context), KEY(ScriptConfig, warmup), { 0 } };

static void plan_warmup(Plan *plan)
{
	static const long counts[] = { 0, 1, 2, 5 };
	for (int s = 0; s < (one_model() ? 1 : NTRAINED); s++)
		for (int i = 0; i < 4; i++)
			plan_add(plan, &(ScriptConfig){ .size = size_or(s),
				.context = one_model() ? context : studied_context(0),
				.warmup = counts[i] });
}

// plan the first steps
typedef struct StartConfig { int start; } StartConfig;
#define STARTS_OF(FIRST, NEXT) \
	FIRST(COLD, "cold") NEXT(KERNELS_FIRST, "kernels first")
enum { CHOICE_IDS(STARTS_OF) };
static const Key start_keys[] = { KEY(StartConfig, start, CHOICES(STARTS_OF)),
	{ 0 } };

static void plan_steps(Plan *plan)
{
	plan_add(plan, &(StartConfig){ COLD });
	if (harness_on_gpu())
		plan_add(plan, &(StartConfig){ KERNELS_FIRST });
}

// time one configuration
static void set_stats(Row *row, const char *phase, bool any, Stats s)
{
	const struct { const char *suffix; double value; } columns[] = {
		{ "ms", s.mean }, { "sd_ms", s.sd }, { "med_ms", s.median },
			{ "min_ms", s.min },
	};
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		char name[32];
		snprintf(name, sizeof name, "%s_%s", phase, columns[i].suffix);
		row_set(row, name, any ? "%.4f" : "-", columns[i].value);
	}
}

static void set_shape(Row *row, const Shape *s)
{
	row_set(row, "d_model", "%ld", s->d_model);
	row_set(row, "d_ff", "%ld", s->d_ff);
	row_set(row, "layers", "%ld", s->layers);
	row_set(row, "heads", "%ld", s->heads);
	row_set(row, "parameters", "%zu", shape_count(s));
}

// train one configuration
static void run_sizes(Row *row, const void *config)
{
	const ScriptConfig *c = config;
	Shape shape = choose_shape(c->size);
	size_t B = c->batch, T = c->context;
	shape.context = c->context;
	set_shape(row, &shape);
	row_set(row, "fwd_GFLOP", "%.4f", forward_flops(&shape, B, T) * 1e-9);
	Device *device = harness_device();
	if (8.0 * B * T > device->limit)
		device->on_oom(8 * B * T, device->limit, "batch");
	if (c->fusion == FUSION_JIT
		&& !jit_start(device, (JitSettings){ .cache = "build/jit" })) {
		row_skip(row, "nothing is compiled at run time");
		return;
	}
	Model *m = model_new(device, &shape, &policies[c->precision], harness_seed);
	if (c->fusion == FUSION_FUSED) {
		model_fuse(m);
		model_set_attention(m, attention == ATTENTION_FLASH);
		model_fit_scores(m, B, T, mode);
	} else if (c->fusion == FUSION_JIT)
		model_keep_compute(m);
	m->layernorm = norm == LAYERNORM;
	Optimizer adamw = { 0 };
	if (mode == MODE_TRAIN)
		adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(B, T, shape.vocab, harness_seed);
	StepStats s = timed_steps(m, &adamw, &b, mode,
		c->fusion != FUSION_EAGER, warmup, steps);
	// fill the row from the times of the steps
	set_stats(row, "fwd", true, s.fwd);
	set_stats(row, "bwd", mode >= MODE_FORWARD_BACKWARD, s.bwd);
	set_stats(row, "opt", mode == MODE_TRAIN, s.opt);
	set_stats(row, "step", true, s.step);
	row_set(row, "peak_MiB", "%.1f", device->total_peak / 1048576.0);
	row_set(row, "loss", "%.6f", s.loss);
	bool gpu = harness_on_gpu();
	row_set(row, "kernels", gpu ? "%d" : "-",
		gpu ? step_kernels(m, &adamw, mode) : 0);
}

// time the first steps one after the other
static Shape swept_shape(void)
{
	Shape s = choose_shape(size_or(SIZE_MEDIUM));
	s.context = one_model() ? context : harness_on_gpu() ? 512 : 128;
	return s;
}

static long faults_so_far(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_minflt;
}

// find the price of a page fault
static double price_of_fault(Device *device)
{
	size_t nbytes = 64 << 20;
	char *fresh = need(aligned_alloc(4096, nbytes));
	long before = faults_so_far();
	double start = device_now_ms(device);
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < nbytes; i += 4096)
		fresh[i] = 1;
	double ms = device_now_ms(device) - start;
	long faults = faults_so_far() - before;
	free(fresh);
	return ms / (faults > 0 ? faults : 1);
}

// time the start of threads and library
static void time_start(Device *device, double *threads_ms, double *library_ms)
{
	static float a[64 * 64], c[64 * 64];
	double clock[4] = { device_now_ms(device) };
	int running = 0;
	#pragma omp parallel reduction(+:running)
	running++;
	clock[1] = device_now_ms(device);
	for (int i = 2; i < 4; i++) {
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 64, 64, 64, 1, a,
			64, a, 64, 0, c, 64);
		clock[i] = device_now_ms(device);
	}
	*threads_ms = clock[1] - clock[0];
	*library_ms = (clock[2] - clock[1]) - (clock[3] - clock[2]);
	if (running != omp_get_max_threads())
		die("%d threads run where %d were expected", running,
			omp_get_max_threads());
}

static void run_steps(Row *row, const void *config)
{
	bool gpu = harness_on_gpu();
	if (((const StartConfig *)config)->start == KERNELS_FIRST)
		setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	Shape shape = swept_shape();
	Device *device = harness_device();
	double threads_ms = 0, openblas_ms = 0, fault_ms = 0;
	if (!gpu) {
		time_start(device, &threads_ms, &openblas_ms);
		fault_ms = price_of_fault(device);
	}
	Model *m = model_new(device, &shape, &policies[precision], harness_seed);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(batch, shape.context, shape.vocab, harness_seed);
	// give a row for each of the first steps
	for (int step = 1; step <= 12; step++) {
		long before = faults_so_far();
		double alloc_ms = device->alloc_ms, choice_ms = device->choice_ms,
			library_ms = device->library_ms;
		StepTime t = timed_step(m, &adamw, &b, MODE_TRAIN);
		long faults = faults_so_far() - before;
		library_ms = device->library_ms - library_ms;
		bool first = step == 1;
		const struct { const char *column; double ms; } times[] = {
			{ "open_ms", first ? device->open_ms : 0 },
			{ "threads_ms", first ? threads_ms : 0 },
			{ "choice_ms", device->choice_ms - choice_ms },
			{ "library_ms", library_ms + (first ? openblas_ms : 0) },
			{ "alloc_ms", device->alloc_ms - alloc_ms },
			{ "fwd_ms", t.fwd_ms }, { "bwd_ms", t.bwd_ms },
			{ "opt_ms", t.opt_ms }, { "step_ms", t.step_ms },
		};
		row_set(row, "step", "%d", step);
		for (size_t i = 0; i < sizeof times / sizeof *times; i++)
			row_set(row, times[i].column, "%.4f", times[i].ms);
		row_set(row, "faults", "%ld", faults);
		row_set(row, "faults_ms", gpu ? "-" : "%.4f", faults * fault_ms);
		row_emit(row);
	}
}

// time the classes, then a step without events
static const Key split_keys[] = { KEY(ScriptConfig, size, SIZES),
	KEY(ScriptConfig, context), KEY(ScriptConfig, precision, PRECISIONS), { 0 } };

static void plan_split(Plan *plan)
{
	bool gpu = harness_on_gpu();
	for (int p = 0; p <= gpu; p++)
		for (int i = 0; i < NTRAINED; i++)
			plan_add(plan, &(ScriptConfig){ .size = i,
				.context = scaled_context(512),
				.precision = p ? POLICY_BF16 : POLICY_FP32 });
}

// time a step with stamps and one without
static void run_split(Row *row, const void *config)
{
	const ScriptConfig *c = config;
	Shape shape = choose_shape(c->size);
	size_t B = batch, T = shape.context = c->context;
	Device *device = harness_device();
	Model *m = model_new(device, &shape, &policies[c->precision], harness_seed);
	model_fuse(m);
	Optimizer adamw = adamw_new(m, 1e-4, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(B, T, shape.vocab, harness_seed);
	double *ms = need(malloc((NCLASSES + 1) * steps * sizeof *ms));
	double classes[NCLASSES], median[2];
	// take steps with and without stamps
	for (int timed = 1; timed >= 0; timed--) {
		Replay replay = { 0 };
		watch_classes(device, timed);
		for (long i = -warmup; i < steps; i++) {
			StepTime t = replayed_step(&replay, m, &adamw, &b, MODE_TRAIN);
			if (timed)
				sum_classes(device, classes);
			for (int k = 0; k < NCLASSES && i >= 0 && timed; k++)
				ms[k * steps + i] = classes[k];
			if (i >= 0)
				ms[NCLASSES * steps + i] = t.step_ms;
		}
		replay_free(&replay, device);
		median[timed] = stats_of(ms + NCLASSES * steps, (int)steps).median;
	}
	for (int k = 0; k < NCLASSES; k++)
		row_set(row, class_columns[k], "%.4f",
			stats_of(ms + k * steps, (int)steps).median);
	// set the FLOPs of both classes of matmuls
	double attention = 12.0 * B * T * T * shape.heads * shape.d_head
		* shape.layers;
	row_set(row, "event_ms", "%.4f", median[1]);
	row_set(row, "step_ms", "%.4f", median[0]);
	row_set(row, "linear_GFLOP", "%.3f",
		(3 * forward_flops(&shape, B, T) - attention) * 1e-9);
	row_set(row, "attention_GFLOP", "%.3f", attention * 1e-9);
	row_set(row, "parameters", "%zu", m->count);
}

// describe the sweeps to the harness
static void run_warmup(Row *row, const void *config)
{
	const ScriptConfig *c = config;
	Shape shape = choose_shape(c->size);
	shape.context = c->context;
	Model *m = model_new(harness_device(), &shape, &policies[precision],
		harness_seed);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(batch, shape.context, shape.vocab, harness_seed);
	double *ms = need(malloc(steps * sizeof *ms));
	for (long i = -c->warmup; i < steps; i++) {
		StepTime t = timed_step(m, &adamw, &b, MODE_TRAIN);
		if (i >= 0)
			ms[i] = t.step_ms;
	}
	set_stats(row, "step", true, stats_of(ms, (int)steps));
	row_set(row, "first_ms", "%.4f", ms[0]);
}

// run forward passes alone
static void run_forward(Row *row, const void *config)
{
	mode = MODE_FORWARD;
	run_sizes(row, config);
}

// name the sweeps
const Experiment experiment = {
	.about = "time forward, backward and optimizer of models", .options = options,
	.cpu_scale = "small (widths, depths, vocabulary divided by 8, contexts by 16 "
		"or 4)", .full_scale = one_model,
	.sweeps = SWEEPS(
		{ "sizes", keys, plan_sizes, run_sizes },
		{ "forward", keys, plan_forward, run_forward },
		{ "warmup", warmup_keys, plan_warmup, run_warmup },
		{ "split", split_keys, plan_split, run_split },
		{ "steps", start_keys, plan_steps, run_steps }),
};
