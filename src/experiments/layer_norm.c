/* layer_norm: LayerNorm and RMSNorm, alone and in the model */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "bench/peer.h"
#include "bench/timing.h"
#include "bench/training.h"
#include "cases/norm_rows.h"
#include "ops/array.h"

// read the options of the norms
static long rows, width, repeats, steps = 4;
static const Option options[] = {
	ROWS_OPTION(&rows),
	WIDTH_OPTION(&width, "1..8192"),
	REPEATS_OPTION(&repeats),
	STEPS_OPTION_IN(&steps, "1..1000", "measured steps of a model"),
	{ 0 }
};

// name three norms
static void fused_rmsnorm(void *rows)
{
	const NormRowsCase *n = rows;
	n->ops->fused_rmsnorm_forward(n->device, (NormForward){ .y = n->y,
		.rho = n->rho, .x = n->x, .g = n->g, .eps = ROWS_EPS }, n->rows, n->C);
}

static void fused_rmsnorm_back(void *rows)
{
	const NormRowsCase *n = rows;
	n->ops->fused_rmsnorm_backward(n->device, (NormBackward){ .dsum = n->dx,
		.dg = n->dg, .beta = 1, .dy = n->dy, .sum = n->x, .g = n->g,
		.rho = n->rho }, n->rows, n->C);
}

static const struct NormPasses {
	const char *name;
	bool centers;                    /* subtracts the mean and adds a shift */
	Work *forward, *backward;
} kinds[] = {
	{ "rmsnorm eager", false, norm_rows_rmsnorm, norm_rows_rmsnorm_back },
	{ "rmsnorm fused", false, fused_rmsnorm, fused_rmsnorm_back },
	{ "layernorm", true, norm_rows_layernorm, norm_rows_layernorm_back },
};
enum { NKINDS_OF_NORM = sizeof kinds / sizeof *kinds };

// time a norm in both directions
typedef struct NormConfig {
	long rows, width;
	int by;
} NormConfig;
static const Key norm_keys[] = { KEY(NormConfig, rows), KEY(NormConfig, width),
	KEY(NormConfig, by, SIDES), { 0 } };

// plan widths of norms
static void plan_norms(Plan *plan)
{
	long count = rows ? rows : harness_on_gpu() ? 50000 : 1000;
	for (long C = width ? width : 1024; C <= 8192; C *= 2) {
		plan_add(plan, &(NormConfig){ count, C, OURS });
		if (harness_on_gpu())
			plan_add(plan, &(NormConfig){ count, C, PYTORCH });
		if (width)
			break;
	}
}

// set the cells of a norm's pass
static void set_norm(Row *row, const char *direction, Timing t, double bytes,
	double copy)
{
	const double GBps = bytes / t.ms * 1e-6;
	const struct { const char *suffix; double value; } columns[] = {
		{ "ms", t.ms }, { "sd_ms", t.sd_ms }, { "GBps", GBps },
			{ "fraction", GBps / copy },
	};
	char name[32];
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		snprintf(name, sizeof name, "%s_%s", direction, columns[i].suffix);
		row_set(row, name, "%.6g", columns[i].value);
	}
	snprintf(name, sizeof name, "%s_kernels", direction);
	row_set(row, name, t.kernels ? "%d" : "-", t.kernels);
}

// time and check our norms
static int runs_of_norm(void)
{
	return repeats ? (int)repeats : harness_on_gpu() ? 1000 : 10;
}

static void time_our_norms(Row *row, const NormConfig *s, Device *d, double copy)
{
	int runs = runs_of_norm();
	NormRowsCase n = norm_rows_new(d, s->rows, s->width, FP32);
	size_t size = n.rows * n.C;
	double bytes = 2.0 * size * d->backend->width(FP32);
	row_set(row, "impl", "ours");
	for (int i = 0; i < NKINDS_OF_NORM; i++) {
		n.ops->fill(d, n.y, NAN, size);
		n.ops->fill(d, n.dx, 0, size);
		kinds[i].forward(&n);
		kinds[i].backward(&n);
		norm_rows_check(&n, kinds[i].centers, kinds[i].name);
		row_set(row, "norm", "%s", kinds[i].name);
		set_norm(row, "fwd", timed(d, kinds[i].forward, &n, runs), bytes, copy);
		set_norm(row, "bwd", timed(d, kinds[i].backward, &n, runs), 2 * bytes,
			copy);
		row_emit(row);
	}
}

// time PyTorch's norms
static void time_pytorch_norms(Row *row, const NormConfig *s, double copy)
{
	enum { LIMIT_S = 240 };
	peer_measure(row, LIMIT_S, "pytorch_peer.py", "norms --rows %ld --width %ld "
		"--repeats %d --seed %ld --copy %.2f", s->rows, s->width,
		runs_of_norm(), harness_seed, copy);
}

// time the norms of one side
static void run_norms(Row *row, const void *config)
{
	const NormConfig *s = config;
	Device *d = harness_device();
	double copy = copy_GBps(d, copy_length(d), 21);
	row_set(row, "copy_GBps", "%.2f", copy);
	if (s->by == OURS)
		time_our_norms(row, s, d, copy);
	else
		time_pytorch_norms(row, s, copy);
}

// replace the norm of a model
static const Ops *whole;

static void fused_forward(Device *d, Array y, Array rho, Array x, Array g,
	size_t rows, size_t C, double eps)
{
	whole->fused_rmsnorm_forward(d, (NormForward){ .y = y, .rho = rho, .x = x,
		.g = g, .eps = eps }, rows, C);
}

static void fused_backward(Device *d, Array dx, Array dg, Array dy,
	Array x, Array g, Array rho, size_t rows, size_t C)
{
	whole->fused_rmsnorm_backward(d, (NormBackward){ .dsum = dx, .dg = dg,
		.beta = 1, .dy = dy, .sum = x, .g = g, .rho = rho }, rows, C);
}

static Ops with_fused_norm(const Ops *ops)
{
	Ops changed = *ops;
	whole = ops;
	changed.rmsnorm_forward = fused_forward;
	changed.rmsnorm_backward = fused_backward;
	return changed;
}

// time models with either norm
typedef struct NormModelConfig {
	int size;
	long context;
	int norm, fusion;
} NormModelConfig;
#define NORMS_OF(FIRST, NEXT) FIRST(RMSNORM_EAGER, "rmsnorm eager") \
	NEXT(RMSNORM_FUSED, "rmsnorm fused") NEXT(LAYERNORM, "layernorm")
enum { CHOICE_IDS(NORMS_OF) };
static const Key model_keys[] = { KEY(NormModelConfig, size, SIZES),
	KEY(NormModelConfig, context), KEY(NormModelConfig, norm,
	CHOICES(NORMS_OF)),
	KEY(NormModelConfig, fusion, FUSIONS),
	{ 0 } };

// plan models with each norm
static void plan_models(Plan *plan)
{
	for (int i = 0; i < NTRAINED; i++) {
		long T = scaled_context(512);
		plan_add(plan, &(NormModelConfig){ i, T, RMSNORM_EAGER, 0 });
		plan_add(plan, &(NormModelConfig){ i, T, RMSNORM_FUSED, 0 });
		plan_add(plan, &(NormModelConfig){ i, T, LAYERNORM, 0 });
		plan_add(plan, &(NormModelConfig){ i, T, RMSNORM_FUSED, 1 });
	}
}

// make a model with a norm
static Model *model_with(const NormModelConfig *c, Device *d, Ops *ops)
{
	Shape shape = studied_shape(c->size, c->context);
	Model *m = model_new(d, &shape, &policies[POLICY_FP32], harness_seed);
	m->layernorm = c->norm == LAYERNORM;
	if (c->fusion) {
		model_fuse(m);
	} else if (c->norm == RMSNORM_FUSED) {
		*ops = with_fused_norm(m->ops);
		m->ops = ops;
	}
	return m;
}

static void run_model(Row *row, const void *config)
{
	enum { BATCH = 4, WARMUP = 2 };
	Device *d = harness_device();
	Ops ops;
	Model *m = model_with(config, d, &ops);
	Batch b = batch_random(BATCH, m->shape.context, m->shape.vocab,
		harness_seed);
	StepStats s = timed_steps(m, NULL, &b, MODE_FORWARD_BACKWARD, false, WARMUP,
		steps);
	row_set_time(row, "fwd", s.fwd);
	row_set_time(row, "bwd", s.bwd);
	row_set(row, "peak_MiB", "%.1f", d->total_peak / 1048576.0);
	row_set(row, "loss", "%.6f", s.loss);
}

// describe the experiment of the norms
const Experiment experiment = {
	.about = "LayerNorm and RMSNorm, alone and in the model", .options = options,
	.cpu_scale = "small (1000 rows, 10 passes; models: widths, depths, "
		"vocabulary divided by 8, contexts by 16)",
	.sweeps = SWEEPS(
		{ "norms", norm_keys, plan_norms, run_norms },
		{ "model", model_keys, plan_models, run_model }),
};
