/* torch_compile: attention and models whose operations are joined at run time */
#include <stdio.h>

#include "base/error.h"
#include "bench/peer.h"
#include "bench/timing.h"
#include "bench/training.h"
#include "cases/attention_case.h"
#include "jit/jit.h"
#include "jit/kernel_cache.h"

// read what is to be compiled
static int precision = -1, impl = -1, size = -1;
static long batch, length, width, runs, steps;
#define IMPLS_OF(FIRST, NEXT) \
	FIRST(EAGER, "eager") NEXT(ALONE, "alone") NEXT(JIT, "jit") \
	NEXT(FUSED, "fused") NEXT(PYTORCH_EAGER, "pytorch-eager") \
	NEXT(PYTORCH_COMPILED, "pytorch-compiled")
#define IMPLS CHOICES(IMPLS_OF)
enum { CHOICE_IDS(IMPLS_OF) NIMPLS };
static const Option options[] = {
	IMPL_OPTION_AS(&impl, OPT_CHOICE, IMPLS, "only this implementation"),
	PRECISION_OPTION(&precision),
	BATCH_OPTION_IN(&batch, "1..1024", "sequences: 8 of attention, of one "
		"head each, and 4 of a model"),
	LENGTH_OPTION_IN(&length, "1..65536", "only this length, or context"),
	HEAD_SIZE_OPTION(&width),
	SIZE_OPTION(&size),
	RUNS_OPTION_FOR(&runs, "measured passes of attention"),
	STEPS_OPTION_IN(&steps, "2..1000", "measured steps of a model"),
	{ 0 }
};

// choose which rows are wanted
static bool is_wanted(int only, int one)
{
	return only < 0 || only == one;
}

/* on a CPU: one precision, and neither the fused path nor PyTorch */
static bool is_possible(int policy, int by)
{
	return is_wanted(precision, policy) && is_wanted(impl, by)
		&& (harness_on_gpu() || (by < FUSED && (policy == POLICY_FP32
		|| policy == precision)));
}

static void expect_some(int rows)
{
	if (rows == 0)
		usage_error("no row has this implementation, size and precision");
}

// record what is compiled
#define FOLDER "build/jit-cold"

static bool recorded(int by)
{
	return by == ALONE || by == JIT;
}

/* starts recording for the implementations that compile; false: the device
 * cannot, and the row says so */
static bool record(Row *row, Device *d, int by)
{
	JitSettings settings = { .cache = FOLDER, .alone = by == ALONE };
	cache_remove(FOLDER);
	if (!recorded(by) || jit_start(d, settings))
		return true;
	row_skip(row, "nothing is compiled at run time");
	return false;
}

// start cold and warm
static void start_twice(Row *row, Device *d, Work *work, void *arg)
{
	JitCounts count[3];
	for (int start = 0; start < 3; start++) {
		device_now_ms(d);               /* all work is done */
		count[start] = jit_counts(d);
		if (start == 2)
			break;
		jit_forget(d);
		work(arg);
	}
	cache_remove(FOLDER);
	row_set(row, "compiled", "%ld", count[1].compiled - count[0].compiled);
	row_set(row, "cold_ms", "%.3f", count[1].compile_ms - count[0].compile_ms);
	row_set(row, "warm_ms", count[2].compiled == count[1].compiled ? "%.3f" : "-",
		count[2].load_ms - count[1].load_ms);
}

// set what groups move
/* counts the work between two calls that leave no group open */
static void count_groups(Row *row, Device *d, const char *phase, Work *work,
	void *arg)
{
	JitCounts a = jit_counts(d);
	work(arg);
	device_now_ms(d);
	JitCounts b = jit_counts(d);
	const struct { const char *suffix; double value; } columns[] = {
		{ "operations", b.operations - a.operations },
		{ "kernels", b.kernels - a.kernels },
		{ "eager_MB", (b.bytes_eager - a.bytes_eager) * 1e-6 },
		{ "MB", (b.bytes - a.bytes) * 1e-6 },
	};
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		char name[32];
		snprintf(name, sizeof name, "%s_%s", phase, columns[i].suffix);
		row_set(row, name, "%.10g", columns[i].value);
	}
}

// compile attention
typedef struct CompiledAttentionConfig {
	int dtype;
	long batch, n, d;
	int impl;
} CompiledAttentionConfig;
static const Key shaped_keys[] = { KEY(CompiledAttentionConfig, dtype,
	PRECISIONS),
	KEY(CompiledAttentionConfig, batch), KEY(CompiledAttentionConfig, n),
	KEY(CompiledAttentionConfig, d),
	KEY(CompiledAttentionConfig, impl, IMPLS), { 0 } };

/* rows */
static int plan_shape(Plan *plan, int dtype, long n, long d)
{
	int rows = 0;
	for (int by = 0; by < NIMPLS; by++)
		if (is_possible(dtype, by) && by != FUSED
			&& (by < PYTORCH_EAGER || d == 64 || d == width)) {
			plan_add(plan, &(CompiledAttentionConfig){ dtype, batch ? batch : 8,
				n, d, by });
			rows++;
		}
	return rows;
}

// plan the grid of shapes
static void plan_attention(Plan *plan)
{
	static const int dtypes[] = { POLICY_FP32, POLICY_BF16 };
	static const long widths[] = { 16, 32, 64, 128 },
		lengths[] = { 256, 1024, 4096, 8192, 16384, 32768 };
	bool gpu = harness_on_gpu();
	int nlengths = length ? 1 : gpu ? 6 : 4, rows = 0;
	for (int p = 0; p < 2; p++)
		for (int w = 0; w < (width || !gpu ? 1 : 4); w++)
			for (int i = 0; i < nlengths; i++)
				rows += plan_shape(plan, dtypes[p], length ? length
					: gpu ? lengths[i] : lengths[i + 1] / SCALE,
					width ? width : gpu ? widths[w] : 64);
	expect_some(rows);
}

// time both passes of attention
static void both_passes(void *attention)
{
	attention_case_forward(attention);
	attention_case_backward(attention);
}

static int runs_of_attention(long n)
{
	return runs ? (int)runs : n > 8192 || !harness_on_gpu() ? 5
		: n < 8192 ? 100 : 20;
}

static void time_attention(Row *row, AttentionCase *a, bool counted)
{
	Device *d = a->device;
	int n = runs_of_attention(a->n);
	if (counted) {
		count_groups(row, d, "fwd", attention_case_forward, a);
		count_groups(row, d, "bwd", attention_case_backward, a);
	}
	Timing fwd = timed(d, attention_case_forward, a, n);
	Timing bwd = timed(d, attention_case_backward, a, n);
	row_set_time(row, "fwd", (Stats){ .median = fwd.ms, .sd = fwd.sd_ms });
	row_set_time(row, "bwd", (Stats){ .median = bwd.ms, .sd = bwd.sd_ms });
	row_set(row, "peak_MiB", "%.2f", d->total_peak / 1048576.0);
}

// compile, check and time attention
static void compile_attention(Row *row, const CompiledAttentionConfig *c)
{
	Device *d = harness_device();
	Type type = policies[c->dtype].op[OP_SCORES].input;
	if (!record(row, d, c->impl))
		return;
	AttentionCase a = attention_case(d, c->batch, 1, c->n, c->d, true, type,
		harness_seed);
	attention_case_gradients(&a, harness_seed);
	if (recorded(c->impl))
		start_twice(row, d, both_passes, &a);
	else
		both_passes(&a);
	attention_case_check(&a, true, type == FP32 ? 2e-5 : 3e-2);
	time_attention(row, &a, recorded(c->impl));
	attention_case_free(&a);
	jit_stop(d);
}

static void run_attention(Row *row, const void *config)
{
	enum { LIMIT_S = 240 };
	const CompiledAttentionConfig *c = config;
	if (c->impl < PYTORCH_EAGER)
		compile_attention(row, c);
	else
		peer_measure(row, LIMIT_S, "pytorch_sdpa.py", "passes "
			"--backend %s --dtype %s --batch %ld --heads 1 --n %ld --d %ld "
			"--runs %ld",
			c->impl == PYTORCH_EAGER ? "eager" : "compiled",
			policies[c->dtype].name, c->batch, c->n, c->d,
			(long)runs_of_attention(c->n));
}

// compile models
typedef struct CompiledModelConfig {
	int size;
	long context, batch;
	int precision, impl;
} CompiledModelConfig;
static const Key trained_keys[] = { KEY(CompiledModelConfig, size, SIZES),
	KEY(CompiledModelConfig, context), KEY(CompiledModelConfig, batch),
	KEY(CompiledModelConfig, precision, PRECISIONS),
	KEY(CompiledModelConfig, impl, IMPLS), { 0 } };

static void plan_models(Plan *plan)
{
	static const int policy[] = { POLICY_BF16, POLICY_FP32 };
	const long context = length ? length : scaled_context(512);
	int rows = 0;
	for (int p = 0; p < 2; p++)
		for (int s = 0; s < NTRAINED; s++)
			for (int by = 0; by < NIMPLS; by++)
				if (is_possible(policy[p], by) && is_wanted(size, s)) {
					plan_add(plan,
						&(CompiledModelConfig){ s, context, batch ? batch : 4,
						policy[p], by });
					rows++;
				}
	expect_some(rows);
}

// compile and time the steps of a model
static void one_step(void *training)
{
	Training *t = training;
	timed_step(t->m, &t->adamw, &t->batch, MODE_TRAIN);
}

static void compile_model(Row *row, const CompiledModelConfig *c)
{
	enum { WARMUP = 2 };
	Device *d = harness_device();
	if (!record(row, d, c->impl))
		return;
	const ModelConfig config = { .size = c->size, c->context, c->precision,
		c->impl == FUSED ? FUSION_FUSED : recorded(c->impl) ? FUSION_JIT
		: FUSION_EAGER };
	// make the model, and count what it compiles
	Training t = training_on(d, &config, c->batch, true);
	if (recorded(c->impl)) {
		start_twice(row, d, one_step, &t);
		count_groups(row, d, "step", one_step, &t);
		training_free(&t);              /* all are timed from the start */
		t = training_on(d, &config, c->batch, true);
	}
	device_reset_peak(d);
	StepStats s = timed_steps(t.m, &t.adamw, &t.batch, MODE_TRAIN,
		c->impl != EAGER, WARMUP, steps ? steps : harness_on_gpu() ? 10 : 5);
	row_set_steps(row, &s);
	row_set_time(row, "opt", s.opt);
	row_set(row, "peak_MiB", "%.1f", d->total_peak / 1048576.0);
	row_set(row, "loss", "%.6f", s.loss);
	training_free(&t);
	jit_stop(d);
}

// time a model by an implementation
static void run_model(Row *row, const void *config)
{
	enum { LIMIT_S = 420 };
	const CompiledModelConfig *c = config;
	if (c->impl < PYTORCH_EAGER)
		compile_model(row, c);
	else
		peer_measure(row, LIMIT_S, "pytorch_peer.py", "time --impl %s --size %s "
			"--context %ld --batch %ld --precision %s --warmup 5 --steps %ld "
			"--seed %ld", c->impl == PYTORCH_EAGER ? "eager"
			: "compiled --blocks", model_sizes[c->size].name, c->context,
			c->batch, policies[c->precision].name, steps ? steps : 10,
			harness_seed);
}

// list the groups of a forward pass
typedef struct GroupsConfig {
	long context, batch;
	int precision;
} GroupsConfig;
static const Key grouped_keys[] = { KEY(GroupsConfig, context),
	KEY(GroupsConfig, batch),
	KEY(GroupsConfig, precision, PRECISIONS), { 0 } };

static void plan_groups(Plan *plan)
{
	plan_add(plan, &(GroupsConfig){ length ? length : scaled_context(512),
		batch ? batch : 4, precision < 0 ? 0 : precision });
}

// list a group when it closes
typedef struct GroupListing {
	Row *row;
	int number;
	bool begun;
} GroupListing;

static void list_group(void *listing, const JitGroup *g)
{
	GroupListing *l = listing;
	if (!l->begun)
		return;
	row_set(l->row, "number", "%d", ++l->number);
	row_set(l->row, "operations", "%d", g->operations);
	row_set(l->row, "shape", "%s", g->shape);
	row_set(l->row, "rows", "%zu", g->rows);
	row_set(l->row, "columns", "%zu", g->C ? g->C : 1);
	row_set(l->row, "eager_MB", "%.10g", g->bytes_eager * 1e-6);
	row_set(l->row, "MB", "%.10g", g->bytes * 1e-6);
	row_set(l->row, "closed", "%s", g->why);
	row_emit(l->row);
}

// run a forward pass of one block
static void run_groups(Row *row, const void *config)
{
	const GroupsConfig *c = config;
	Device *d = harness_device();
	GroupListing list = { .row = row };
	if (!jit_start(d, (JitSettings){ .cache = "build/jit",
		.explain = list_group, .arg = &list })) {
		row_skip(row, "nothing is compiled at run time");
		return;
	}
	Shape shape = studied_shape(SIZE_SMALL, c->context);
	shape.layers = 1;
	Model *m = model_new(d, &shape, &policies[c->precision], harness_seed);
	Batch b = batch_random(c->batch, c->context, shape.vocab, harness_seed);
	device_now_ms(d);
	list.begun = true;
	timed_step(m, NULL, &b, MODE_FORWARD);
	batch_free(&b);
	model_free(&m);
	jit_stop(d);
}

const Experiment experiment = {
	.about = "attention and models, their operations joined at run time",
	.options = options, .cpu_scale = SCALED, .sweeps = SWEEPS(
		{ "attention", shaped_keys, plan_attention, run_attention },
		{ "model", trained_keys, plan_models, run_model },
		{ "groups", grouped_keys, plan_groups, run_groups }),
};
