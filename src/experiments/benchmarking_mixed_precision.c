#define _GNU_SOURCE
#include "bench/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/random.h"
#include "model/toy.h"
#include "ops/array.h"
#include "ops/cpu/cpu.h"

enum { WIDTH = 768, ROWS = 64 };

// find the narrowest format that holds a tensor
static Type narrowest(const Toy *t, ToyTensor which)
{
	static const Type order[] = { BF16, FP16 };   /* 8 and 11 bits */
	Type found = FP32;
	size_t n = toy_count(t, which);
	real *x = need(malloc(n * sizeof *x));
	array_read(t->device, x, t->tensor[which], n);
	for (int k = 0; k < 2 && found == FP32; k++) {
		size_t i = 0;
		while (i < n && x[i] == round_to(order[k], (float)x[i]))
			i++;
		if (i == n)
			found = order[k];
	}
	free(x);
	return found;
}

// ask PyTorch for its types
enum { PEER_BF16, PEER_FP16, NPEERS };
typedef char PeerTypes[NTOY][NPEERS][8];

static int find_tensor(const char *name)
{
	for (int i = 0; i < NTOY; i++)
		if (strcmp(toy_names[i], name) == 0)
			return i;
	die("PyTorch has a tensor '%s', the toy model none", name);
}

// run the script and take its types
/* returns the exit status of the script; "-" where it gave no type */
static int ask_pytorch(PeerTypes types)
{
	char line[128], name[32], bf16[8], fp16[8];
	for (int i = 0; i < NTOY; i++)
		for (int p = 0; p < NPEERS; p++)
			strcpy(types[i][p], "-");
	FILE *answer = need(popen("timeout 300 python3 "
		"src/experiments/pytorch_peer.py toy", "r"));
	while (fgets(line, sizeof line, answer))
		if (sscanf(line, "%31[^\t]\t%7s %7s", name, bf16, fp16) == 3) {
			int i = find_tensor(name);
			strcpy(types[i][PEER_BF16], bf16);
			strcpy(types[i][PEER_FP16], fp16);
		}
	return WEXITSTATUS(pclose(answer));
}

// plan and run the types
typedef struct ToyConfig { const char *model; } ToyConfig;
static const Key type_keys[] = { KEY(ToyConfig, model), { 0 } };

static void plan_types(Plan *plan)
{
	plan_add(plan, &(ToyConfig){ "toy" });
}

enum { NTOYS = 3 };
static const int toy_policies[NTOYS] = { POLICY_FP32, POLICY_BF16, POLICY_FP16 };

static void set_types(Row *row, Toy *const toys[NTOYS], int which)
{
	row_set(row, "tensor", "%s", toy_names[which]);
	for (int i = 0; i < NTOYS; i++) {
		const Policy *p = toys[i]->policy;
		char fits[32];
		snprintf(fits, sizeof fits, "%s_fits", p->name);
		row_set(row, p->name, "%s", type_names[toys[i]->tensor[which].type]);
		row_set(row, fits, "%s", type_names[narrowest(toys[i], which)]);
	}
}

// train each toy model once and list its types
static void run_types(Row *row, const void *config)
{
	(void)config;
	Device *device = harness_device();
	Toy *toys[NTOYS];
	for (int i = 0; i < NTOYS; i++) {
		toys[i] = toy_new(device, &policies[toy_policies[i]], harness_seed);
		toy_forward(toys[i]);
		toy_backward(toys[i]);
	}
	PeerTypes theirs;
	int failed = ask_pytorch(theirs);
	for (int i = 0; i < NTOY; i++) {
		set_types(row, toys, i);
		row_set(row, "pytorch_bf16", "%s", theirs[i][PEER_BF16]);
		row_set(row, "pytorch_fp16", "%s", theirs[i][PEER_FP16]);
		if (failed)
			row_skip(row, "PyTorch could not run (exit %d)", failed);
		row_emit(row);
	}
}

// compute layer norm with some steps narrow
enum NormStep {
	INPUT, MEAN, DEVIATION, SQUARE, VARIANCE, EPSILON, ROOT, OUTPUT, NSTEPS
};
enum { PAIRS = 1 << NSTEPS };        /* no step, but how the sums are made */

static double in(Type t, int narrow, enum NormStep step, double x)
{
	return narrow & 1 << step ? round_to(t, (float)x) : x;
}

static double sum_rounded(Type t, int narrow, enum NormStep step,
	const double *x, int n)
{
	double sum = 0;
	if (narrow & PAIRS && n > 1)
		return in(t, narrow, step, sum_rounded(t, narrow, step, x, n / 2) +
		          sum_rounded(t, narrow, step, x + n / 2, n - n / 2));
	for (int j = 0; j < n; j++)
		sum = in(t, narrow, step, sum + x[j]);
	return sum;
}

static void layernorm_rounded(Type t, int narrow, double *y, const double *x,
                         const double *g, const double *b, int C)
{
	double d[WIDTH], square[WIDTH], mean;
	for (int j = 0; j < C; j++)
		d[j] = in(t, narrow, INPUT, x[j]);
	mean = in(t, narrow, MEAN, sum_rounded(t, narrow, MEAN, d, C) / C);
	for (int j = 0; j < C; j++) {
		d[j] = in(t, narrow, DEVIATION, d[j] - mean);
		square[j] = in(t, narrow, SQUARE, d[j] * d[j]);
	}
	double sum = sum_rounded(t, narrow, VARIANCE, square, C);
	double variance = in(t, narrow, VARIANCE, sum / C);
	double v = in(t, narrow, EPSILON, variance + in(t, narrow, EPSILON, 1e-5));
	double rho = in(t, narrow, ROOT, 1 / sqrt(v));
	for (int j = 0; j < C; j++) {
		double scaled = in(t, narrow, OUTPUT, d[j] * rho);
		scaled = in(t, narrow, OUTPUT, scaled * g[j]);
		y[j] = in(t, narrow, OUTPUT, scaled + b[j]);
	}
}

// list the kinds of rows, and which steps are narrow
static const struct LayerNormInput {
	const char *column;
	double mean, deviation;
} cases[] = {
	{ "ordinary", 0, 1 }, { "large", 0, 300 },
	{ "offset", 100, 1 }, { "tiny", 0, 1e-4 },
};
static const struct { const char *name; int narrow; } arrangements[] = {
	{ "input", 1 << INPUT },
	{ "mean", 1 << MEAN }, { "mean, in pairs", 1 << MEAN | PAIRS },
	{ "deviation", 1 << DEVIATION }, { "square", 1 << SQUARE },
	{ "variance", 1 << VARIANCE },
	{ "variance, in pairs", 1 << VARIANCE | PAIRS },
	{ "epsilon", 1 << EPSILON }, { "root", 1 << ROOT },
	{ "output", 1 << OUTPUT }, { "all", (1 << NSTEPS) - 1 },
	{ "input and output", 1 << INPUT | 1 << OUTPUT },
};
enum { NARRANGEMENTS = sizeof arrangements / sizeof *arrangements };

// die if the reference is not what the model's layer norm computes
static void check_reference(const double *want, const double *x,
                            const double *g, const double *b, size_t C)
{
	static real in[WIDTH], gain[WIDTH], shift[WIDTH], out[WIDTH];
	real mean, rstd;
	for (size_t j = 0; j < C; j++)
		in[j] = x[j], gain[j] = g[j], shift[j] = b[j];
	cpu_layernorm_forward(NULL, (Array){ out, FP32 }, (Array){ &mean, FP32 },
	                      (Array){ &rstd, FP32 }, (Array){ in, FP32 },
	                      (Array){ gain, FP32 }, (Array){ shift, FP32 },
	                      1, C, 1e-5);
	for (size_t j = 0; j < C; j++)
		if (!(fabs(out[j] - want[j]) <= 1e-4))
			die("layer norm [%zu]: %g, not %g", j, (double)out[j], want[j]);
}

// measure the error of the output
static double output_error(Type t, int narrow, const struct LayerNormInput *c)
{
	double x[WIDTH], g[WIDTH], b[WIDTH], want[WIDTH], got[WIDTH];
	double error = 0, size = 0;
	for (int i = 0; i < ROWS; i++) {
		for (int j = 0; j < WIDTH; j++) {
			x[j] = c->mean + c->deviation * random_normal(harness_seed, i, j);
			g[j] = 1 + 0.1 * random_normal(harness_seed, ROWS, j);
			b[j] = 0.1 * random_normal(harness_seed, ROWS + 1, j);
		}
		layernorm_rounded(FP64, 0, want, x, g, b, WIDTH);
		check_reference(want, x, g, b, WIDTH);
		layernorm_rounded(t, narrow, got, x, g, b, WIDTH);
		for (int j = 0; j < WIDTH; j++) {
			error += (got[j] - want[j]) * (got[j] - want[j]);
			size += (want[j] - b[j]) * (want[j] - b[j]);
		}
	}
	return sqrt(error / size);
}

// plan and run layer norm
typedef struct LayerNormConfig {
	Type type;
	const char *narrow;
	int steps;                       /* a bit for each that is narrow */
} LayerNormConfig;
static const Key layernorm_keys[] = { KEY(LayerNormConfig, type, TYPES),
	KEY(LayerNormConfig, narrow), { 0 } };

static void plan_layernorm(Plan *plan)
{
	static const Type types[] = { FP16, BF16 };
	for (int t = 0; t < 2; t++)
		for (int i = 0; i < NARRANGEMENTS; i++)
			plan_add(plan, &(LayerNormConfig){ types[t], arrangements[i].name,
				arrangements[i].narrow });
}

// run layer norm on every kind of rows
static void run_layernorm(Row *row, const void *config)
{
	const LayerNormConfig *c = config;
	for (int i = 0; i < 4; i++) {
		double error = output_error(c->type, c->steps, &cases[i]);
		row_set(row, cases[i].column, isnan(error) ? "nan" : "%.2e", error);
	}
	row_set(row, "one_rounding", "%.10g", type_spacing(c->type, 1) / 2);
}

// plan and run the speed
static const Key speed_keys[] = { KEY(ModelConfig, size, SIZES),
	KEY(ModelConfig, context), KEY(ModelConfig, precision, PRECISIONS), { 0 } };

static void plan_speed(Plan *plan)
{
	for (int i = 0; i < studied_sizes(); i++)
		for (int p = 0; p < NAUTOCAST; p++)
			plan_add(plan, &(ModelConfig){ .size = i, scaled_context(512), p,
				FUSION_FUSED });
}

static void run_speed(Row *row, const void *config)
{
	enum { BATCH = 4 };
	int warmup = harness_on_gpu() ? 5 : 2, steps = harness_on_gpu() ? 10 : 5;
	Training t = training_of(config, BATCH, true);
	StepStats s = timed_steps(t.m, &t.adamw, &t.batch, MODE_TRAIN, true, warmup,
		steps);
	row_set_steps(row, &s);
	row_set(row, "peak_MiB", "%.1f", t.m->device->total_peak / 1048576.0);
	row_set(row, "loss", "%.6f", s.loss);
}

// describe the sweeps of mixed precision to the harness
const Experiment experiment = {
	.about = "steps under each precision policy, and what it does to a toy model "
		"and to layer norm", .cpu_scale = SCALED,
	.sweeps = SWEEPS(
		{ "speed", speed_keys, plan_speed, run_speed },
		{ "types", type_keys, plan_types, run_types },
		{ "layernorm", layernorm_keys, plan_layernorm, run_layernorm }),
};
