/* flash_benchmarking: naive attention and FlashAttention */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bench/peer.h"
#include "bench/timing.h"
#include "bench/training.h"
#include "cases/attention_case.h"
#include "estimate/model_plan.h"

// read the options of attention
static int precision = -1;
static long length, width, heads = 1, batch = 1, runs = 20;
static int variant = -1;
static const Option options[] = {
	PRECISION_OPTION_FOR(&precision, "this format only"),
	LENGTH_OPTION(&length),
	HEAD_SIZE_OPTION(&width),
	HEADS_OPTION(&heads, "1..1024", "heads of a sequence"),
	BATCH_OPTION_IN(&batch, "1..1024", "sequences"),
	VARIANT_OPTION(&variant, ATTENTION_VARIANTS, "this kernel only"),
	RUNS_OPTION_FOR(&runs, "of each pass; a grid has its own"),
	{ 0 }
};

// describe a shape and who computes it
typedef struct AttnRow {
	int dtype;
	long batch, heads, n, d;
	bool causal;                     /* not always in the grid */
	int by;
} AttnRow;
#define SHAPE_KEYS KEY(AttnRow, dtype, PRECISIONS), KEY(AttnRow, batch), \
	KEY(AttnRow, heads), KEY(AttnRow, n), KEY(AttnRow, d), KEY(AttnRow, causal)
static const Key keys[] = { SHAPE_KEYS, { 0 } },
	peer_keys[] = { SHAPE_KEYS, KEY(AttnRow, by, SIDES), { 0 } },
	dtype_keys[] = { KEY(AttnRow, dtype, PRECISIONS), { 0 } };

/* whether a variant has a row for this shape, unless --variant names one */
static bool is_wanted_shape(const char *name, bool low, long B, long H, long n)
{
	if (variant >= 0)
		return strcmp(name, attention_variants[variant]) == 0;
	if (strcmp(name, "naive") == 0)
		return B * H * n * n <= 1L << 32;
	if (strcmp(name, "tiled") == 0)
		return !harness_on_gpu();
	if (strcmp(name, "mma_sync") == 0)
		return harness_on_gpu();
	if (strcmp(name, "simt") == 0)
		return harness_on_gpu() && B * H * n <= 8192;
	if (strcmp(name, "m64") == 0 || strcmp(name, "multi_warpgroup") == 0
			|| strcmp(name, "split_kv") == 0)
		return false;           /* run_tilings has them */
	return harness_on_gpu() && low != (strcmp(name, "split_fp16") == 0);
}

// plan one head at many lengths
static void plan(Plan *plan)
{
	static const long widths[] = { 16, 32, 64, 128 };
	static const int types[] = { POLICY_BF16, POLICY_FP32 };
	long most = harness_on_gpu() ? 65536 : 1024;
	for (int t = 0; t < 2; t++)
		for (int w = 0; w < (width ? 1 : 4); w++)
			for (long n = length ? length : 128; n <= (length ? length : most);
				n *= 2) {
				if (precision < 0 ? !harness_on_gpu() && types[t] == POLICY_BF16
					: precision != types[t])
					continue;
				plan_add(plan, &(AttnRow){ types[t], batch, heads, n,
					width ? width : widths[w], true, OURS });
			}
}

// plan shapes for the tile configurations
static void plan_tilings(Plan *plan)
{
	static const struct { long batch, heads, n; } shapes[] = { { 1, 1, 1024 },
		{ 1, 1, 4096 }, { 1, 1, 16384 }, { 1, 1, 65536 }, { 1, 16, 16384 },
		{ 4, 16, 512 }, { 4, 16, 2048 } };
	static const long widths[] = { 16, 32, 64, 80, 128 };
	bool gpu = harness_on_gpu();
	for (int d = 0; d < 5; d++)
		for (int s = 0; s < 7; s++)
			plan_add(plan, &(AttnRow){ gpu ? POLICY_BF16 : POLICY_FP32,
				shapes[s].batch, shapes[s].heads,
				gpu ? shapes[s].n : shapes[s].n / 64, widths[d], true, OURS });
}

// make the case of a row
static void attention_case_both(void *attention)
{
	attention_case_forward(attention);
	attention_case_backward(attention);
}

/* false: no kernel of this name supports the shape */
static bool attention_of_config(AttentionCase *a, Device *d, const AttnRow *c,
	const char *name)
{
	device_reset_peak(d);
	*a = attention_case(d, c->batch, c->heads, c->n, c->d, c->causal,
		policies[c->dtype].op[OP_SCORES].input, harness_seed);
	if (attention_case_take(a, name))
		return true;
	attention_case_free(a);
	return false;
}

// time the forward pass of each tile configuration
/* name NULL: the device has no such kernel */
static void time_tiling(Device *d, const AttnRow *c, Row *row,
	const char *name, const char *column)
{
	AttentionCase a;
	if (name == NULL || !attention_of_config(&a, d, c, name)) {
		row_set(row, column, "-");
		return;
	}
	attention_case_forward(&a);
	attention_case_check(&a, false, a.type == FP32 ? 5e-5 : 5e-2);
	row_set(row, column, "%.5f",
		timed(d, attention_case_forward, &a, (int)runs).ms);
	attention_case_free(&a);
}

static void run_tilings(Row *row, const void *config)
{
	Device *d = harness_device();
	bool gpu = harness_on_gpu();
	time_tiling(d, config, row, gpu ? "m64" : NULL, "m64_ms");
	time_tiling(d, config, row, gpu ? "multi_warpgroup" : NULL,
		"multi_warpgroup_ms");
	time_tiling(d, config, row, gpu ? "split_kv" : NULL, "split_kv_ms");
	time_tiling(d, config, row, gpu ? "warp_specialized" : "tiled", "chosen_ms");
}

// check a shape, then time its passes
static void time_passes(Device *d, const AttnRow *c, Row *row,
	const char *name)
{
	AttentionCase a;
	row_set(row, "variant", "%s", name);
	if (!attention_of_config(&a, d, c, name))
		return;
	row_status(row, "ok");
	double H = a.H, n = a.n, D = a.D, w = d->backend->width(a.type);
	attention_case_gradients(&a, harness_seed);
	attention_case_both(&a);
	attention_case_check(&a, true, a.type == FP32 ? 5e-5 : 5e-2);
	size_t peak = d->total_peak;
	/* long passes are repeated less often */
	double enough_ms = harness_on_gpu() ? 400 : 100;
	int times = (int)fmax(3,
		fmin(runs, enough_ms / timed_calls(d, attention_case_both, &a, 1).ms));
	Timing f = timed_calls(d, attention_case_forward, &a, times),
		b = timed_calls(d, attention_case_backward, &a, times);
	// time passes by calls and by replays
	row_set(row, "fwd_ms", "%.5f", f.ms);
	row_set(row, "fwd_sd_ms", "%.5f", f.sd_ms);
	row_set(row, "bwd_ms", "%.5f", b.ms);
	row_set(row, "bwd_sd_ms", "%.5f", b.sd_ms);
	row_set(row, "both_ms", "%.5f",
		timed_calls(d, attention_case_both, &a, times).ms);
	row_set(row, "fwd_replay_ms", "%.5f",
		timed(d, attention_case_forward, &a, times).ms);
	row_set(row, "bwd_replay_ms", "%.5f", timed(d, attention_case_backward, &a,
		times).ms);
	// set FLOPs and bytes of both passes
	/* matmuls of the half that the mask leaves; arrays read and written once */
	double pairs = a.B * H * n * (n + 1) / 2, array = a.B * H * n * D * w / 1e6;
	row_set(row, "fwd_GFLOP", "%.6g", 4 * D * pairs / 1e9);
	row_set(row, "bwd_GFLOP", "%.6g", 10 * D * pairs / 1e9);
	row_set(row, "fwd_MB", "%.6g", 4 * array);
	row_set(row, "bwd_MB", "%.6g", 8 * array);
	row_set(row, "peak_MiB", "%.2f", peak / 1048576.0);
	row_emit(row);
	attention_case_free(&a);
}

// time all variants of a shape
static void run(Row *row, const void *config)
{
	const AttnRow *c = config;
	Device *d = harness_device();
	bool low = c->dtype == POLICY_BF16;
	row_skip(row, "no kernel for these heads");                     /* so far */
	for (int v = 0; v < NATTENTION_VARIANTS; v++)
		if (is_wanted_shape(attention_variants[v], low, c->batch, c->heads, c->n))
			time_passes(d, c, row, attention_variants[v]);
}

// time a shape beside PyTorch
static void plan_peers(Plan *plan)
{
	enum { F32 = POLICY_FP32, B16 = POLICY_BF16 };
	static const struct { int dtype; long heads, n, d; } shapes[] = {
		{ B16, 16, 16384, 128 }, { B16, 16, 16384, 64 },
		{ B16, 32, 32768, 128 }, { B16, 1, 65536, 32 },
		{ B16, 1, 1024, 64 }, { B16, 1, 16384, 128 },
		{ F32, 1, 16384, 128 }, { F32, 1, 1024, 64 } };
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		for (int theirs = 0; theirs <= harness_on_gpu(); theirs++)
			plan_add(plan, &(AttnRow){ shapes[i].dtype, batch,
				shapes[i].heads, harness_on_gpu() ? shapes[i].n
				: shapes[i].n / 64, shapes[i].d, true, theirs ? PYTORCH : OURS });
}

// time a shape by us or by PyTorch
static void run_peers(Row *row, const void *config)
{
	enum { LIMIT_S = 240 };
	const AttnRow *c = config;
	bool low = c->dtype == POLICY_BF16, matrices = c->heads * c->n == 16384;
	if (c->by == OURS)
		run(row, config);
	else
		peer_measure(row, LIMIT_S, "pytorch_sdpa.py", "time "
			"--backends %sefficient%s --dtype %s --batch %ld --heads %ld "
			"--n %ld --d %ld --runs %ld", low ? "cudnn,flash2,fa4," : "", matrices
			? ",compiled,eager" : "", policies[c->dtype].name, c->batch,
			c->heads, c->n, c->d, runs);
}

// compare the errors of ours and PyTorch's
static void plan_errors(Plan *plan)
{
	if (harness_on_gpu())
		plan_add(plan, &(AttnRow){ .dtype = POLICY_BF16 });
	plan_add(plan, &(AttnRow){ .dtype = POLICY_FP32 });
}

static void run_errors(Row *row, const void *config)
{
	enum { LIMIT_S = 120 };
	peer_measure(row, LIMIT_S, "pytorch_sdpa.py", "errors --dtype %s",
		policies[((const AttnRow *)config)->dtype].name);
}

// time a grid of shapes beside PyTorch
static void plan_grid(Plan *plan)
{
	static const struct { bool causal; long batch, heads, n, d; } shapes[] = {
		{ true, 4, 12, 512, 64 }, { true, 4, 32, 512, 80 },
		{ true, 8, 16, 2048, 64 }, { true, 2, 16, 8192, 64 },
		{ true, 1, 1, 16384, 128 }, { true, 1, 16, 16384, 128 },
		{ true, 1, 32, 32768, 128 },
		{ false, 4, 16, 1024, 128 }, { false, 8, 16, 2048, 64 },
		{ false, 4, 16, 4096, 128 }, { false, 1, 16, 16384, 128 },
		{ false, 1, 1, 32768, 64 } };
	bool gpu = harness_on_gpu();
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		for (int theirs = 0; theirs <= gpu; theirs++)
			plan_add(plan, &(AttnRow){ gpu ? POLICY_BF16 : POLICY_FP32,
				shapes[i].batch, shapes[i].heads,
				gpu ? shapes[i].n : shapes[i].n / 128, shapes[i].d,
				shapes[i].causal, theirs ? PYTORCH : OURS });
}

// set a time and its deviation
static void set_timing(Row *row, const char *what, Timing t)
{
	char column[32];
	snprintf(column, sizeof column, "%s_ms", what);
	row_set(row, column, "%.5f", t.ms);
	snprintf(column, sizeof column, "%s_sd_ms", what);
	row_set(row, column, "%.5f", t.sd_ms);
}

// time the chosen kernel and its atomic form
/* times the kernel that the engine takes; atomic: its form that sums dQ by
 * atomics */
static void time_chosen(Device *d, const AttnRow *c, Row *row, bool atomic)
{
	AttentionCase a;
	if (!attention_of_config(&a, d, c, atomic ? "chosen-atomic" : "chosen")) {
		row_skip(row, "no kernel for these heads");
		return;
	}
	row_set(row, "variant", "%s%s", a.kernel->name, atomic ? "-atomic" : "");
	attention_case_gradients(&a, harness_seed);
	attention_case_both(&a);
	double error = attention_case_check(&a, true, a.type == FP32 ? 5e-5 : 5e-2);
	bool gpu = harness_on_gpu();
	double once_ms = timed_calls(d, attention_case_both, &a, 1).ms;
	int times = (int)fmax(gpu ? 10 : 3, fmin(200, (gpu ? 200 : 20) / once_ms));
	set_timing(row, "fwd", timed_calls(d, attention_case_forward, &a, times));
	set_timing(row, "bwd", timed_calls(d, attention_case_backward, &a, times));
	set_timing(row, "fwd_replay", timed(d, attention_case_forward, &a, times));
	set_timing(row, "bwd_replay", timed(d, attention_case_backward, &a, times));
	row_set(row, "runs", "%d", times);
	row_set(row, "error", "%.3g", error);
	row_emit(row);
	attention_case_free(&a);
}

// time a shape of the grid by us or by PyTorch
static void run_grid(Row *row, const void *config)
{
	enum { LIMIT_S = 120 };
	const AttnRow *c = config;
	if (c->by == PYTORCH) {
		peer_measure(row, LIMIT_S, "pytorch_sdpa.py", "grid "
			"--backends cudnn,flash2,fa4 --dtype %s --batch %ld --heads %ld "
			"--n %ld --d %ld%s", policies[c->dtype].name, c->batch, c->heads,
			c->n, c->d, c->causal ? " --causal" : "");
		return;
	}
	Device *d = harness_device();
	time_chosen(d, c, row, false);
	if (harness_on_gpu())            /* on a CPU there are no atomics */
		time_chosen(d, c, row, true);
}

// time calls from PyTorch
typedef struct CallConfig {
	int op, tensors, dtype;
	long n, d;                       /* of a norm: rows, and their width */
} CallConfig;
#define CALLED_OF(FIRST, NEXT) \
	FIRST(ATTENTION, "attention") NEXT(RMSNORM, "rmsnorm")
#define TENSORS_OF(FIRST, NEXT) FIRST(ON_CPU, "cpu") NEXT(ON_GPU, "gpu")
enum { CHOICE_IDS(CALLED_OF) };
enum { CHOICE_IDS(TENSORS_OF) };
static const Key call_keys[] = { KEY(CallConfig, op, CHOICES(CALLED_OF)),
	KEY(CallConfig, tensors, CHOICES(TENSORS_OF)),
	KEY(CallConfig, dtype, PRECISIONS),
	KEY(CallConfig, n), KEY(CallConfig, d), { 0 } };

// plan calls on a CPU and on a GPU
static void plan_calls(Plan *plan)
{
	for (int op = ATTENTION; op <= RMSNORM; op++) {
		plan_add(plan, &(CallConfig){ op, ON_CPU, POLICY_FP32, 1, 64 });
		if (harness_on_gpu())
			plan_add(plan, &(CallConfig){ op, ON_GPU, POLICY_BF16, 1024,
				op == ATTENTION ? 64 : 1024 });
	}
}

// have PyTorch time the calls
static void run_calls(Row *row, const void *config)
{
	enum { LIMIT_S = 120 };
	static const char *const ops[] = { CHOICE_NAMES(CALLED_OF) },
		*const tensors[] = { CHOICE_NAMES(TENSORS_OF) };
	const CallConfig *c = config;
	if (setenv("OMP_NUM_THREADS", "1", true) != 0)
		die("out of host memory");
	peer_measure(row, LIMIT_S, "pytorch_sdpa.py", "calls "
		"--op %s --tensors %s --dtype %s --n %ld --d %ld",
		ops[c->op], tensors[c->tensors], policies[c->dtype].name, c->n, c->d);
}

// time the model with either attention
typedef struct FlashModelConfig {
	int size;
	long context;
	int precision, attention;
} FlashModelConfig;
static const Key model_keys[] = { KEY(FlashModelConfig, size, SIZES),
	KEY(FlashModelConfig, context), KEY(FlashModelConfig, precision, PRECISIONS),
	KEY(FlashModelConfig, attention, ATTENTIONS), { 0 } };

// plan models with either attention
static void plan_model(Plan *plan)
{
	static const long contexts[] = { 512, 2048 };
	for (int p = POLICY_FP32; p <= POLICY_BF16; p++)
		for (int s = 0; s < NTRAINED; s++)
			for (int c = 0; c <= p; c++)
				for (int flash = 0; flash < 2; flash++)
					plan_add(plan, &(FlashModelConfig){ s,
						scaled_context(contexts[c]), p, flash });
}

// time the steps of a model
static void run_model(Row *row, const void *config)
{
	enum { BATCH = 4 };
	int warmup = harness_on_gpu() ? 2 : 1, steps = harness_on_gpu() ? 5 : 3;
	const FlashModelConfig *c = config;
	Training t = training_of(&(ModelConfig){ .size = c->size,
		.context = c->context, .precision = c->precision,
		.fusion = FUSION_FUSED }, BATCH,
		true);
	model_set_attention(t.m, c->attention == ATTENTION_FLASH);
	model_fit_scores(t.m, BATCH, (size_t)c->context, MODE_TRAIN);
	StepStats s = timed_steps(t.m, &t.adamw, &t.batch, MODE_TRAIN, true, warmup,
		steps);
	row_set_steps(row, &s);
	row_set(row, "peak_MiB", "%.1f", t.m->device->total_peak / 1048576.0);
}

const Experiment experiment = {
	.about = "naive attention and FlashAttention",
	.options = options, .cpu_scale = "small (lengths up to 1024; models: widths, "
		"depths, vocabulary divided by 8, contexts by 16)",
	.sweeps = SWEEPS(
		{ "lengths", keys, plan, run },
		{ "tiles", keys, plan_tilings, run_tilings },
		{ "peers", peer_keys, plan_peers, run_peers },
		{ "grid", peer_keys, plan_grid, run_grid },
		{ "calls", call_keys, plan_calls, run_calls },
		{ "errors", dtype_keys, plan_errors, run_errors },
		{ "model", model_keys, plan_model, run_model }),
};
