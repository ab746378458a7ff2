/* fp8_training: steps in FP8 beside bf16, their matmuls and casts, the errors
 * of these, and what a model learns */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/peer.h"
#include "bench/timing.h"
#include "bench/training.h"
#include "cases/fp8_error.h"
#include "cases/fp8_gemm.h"
#include "cases/text_training.h"
#include "model/fp8.h"
#include "ops/fp8.h"

static const char *path = "writeup.nw";
static int size = -1, scaling = -1, gradient = -1;
static long steps, batch = 4, context;
static const Option options[] = {
	SIZE_OPTION_FOR(&size, "this model only"),
	{ "fp8-scaling", OPT_CHOICE, &scaling, FP8_SCALINGS,
		"this scaling only" },
	{ "fp8-gradient", OPT_CHOICE, &gradient, FP8_GRADIENTS,
		"this format of gradients only" },
	CONTEXT_OPTION_IN(&context, "1..65536",
		"tokens in a sequence: 512, on a CPU 32"),
	BATCH_OPTION(&batch),
	STEPS_OPTION_IN(&steps, "1..1000000",
		"steps of learning: 1000, on a CPU 60"),
	TEXT_OPTION(&path),
	{ 0 }
};

// choose sizes, scalings and formats of gradients
/* a configuration's FP8: scaling, gradients */
typedef struct Fp8Config { int scaling, gradient; } Fp8Config;

static Fp8Settings settings_of(Fp8Config c)
{
	return (Fp8Settings){ c.scaling, c.gradient == FP8_GRADIENT_E4M3 ? E4M3
		: E5M2 };
}

static bool chosen(int option, int value)
{
	return option < 0 || option == value;
}

/* calls add for each scaling with gradients in E5M2, and for blocks in E4M3 */
static void for_each_fp8(Plan *plan, const void *rest,
	void (*add)(Plan *plan, const void *rest, Fp8Config c))
{
	for (int s = 0; s < NFP8_SCALINGS; s++)
		for (int g = 0; g < 2; g++)
			if (chosen(scaling, s) && chosen(gradient, g)
				&& (g == FP8_GRADIENT_E5M2 || s == FP8_BLOCK))
				add(plan, rest, (Fp8Config){ s, g });
}

// time steps in FP8 beside bf16
typedef struct SpeedConfig {
	ModelConfig model;
	Fp8Config fp8;
} SpeedConfig;
static const Key speed_keys[] = { KEY(ModelConfig, size, SIZES),
	KEY(ModelConfig, context),
	{ "scaling", KEY_CHOICE, offsetof(SpeedConfig, fp8.scaling), FP8_SCALINGS },
	{ "gradient", KEY_CHOICE, offsetof(SpeedConfig, fp8.gradient),
		FP8_GRADIENTS }, { 0 } };

static void add_speed(Plan *plan, const void *model, Fp8Config c)
{
	plan_add(plan, &(SpeedConfig){ *(const ModelConfig *)model, c });
}

/* fills in the models whose steps are timed; returns how many there are */
static int timed_models(ModelConfig models[2])
{
	static const int sizes[] = { SIZE_XL, SIZE_2_7B };
	bool gpu = harness_on_gpu();
	int n = size < 0 && gpu ? 2 : 1;
	for (int i = 0; i < n; i++)
		models[i] = (ModelConfig){ .size = size >= 0 ? size : gpu ? sizes[i]
			: SIZE_SMALL, context ? context : gpu ? 512 : 512 / SCALE, POLICY_FP8,
			FUSION_FUSED };
	return n;
}

static void plan_speed(Plan *plan)
{
	ModelConfig models[2];
	int n = timed_models(models);
	for (int i = 0; i < n; i++)
		for_each_fp8(plan, &models[i], add_speed);
}

static StepStats time_steps(const SpeedConfig *c, int precision,
	double *peak_MiB)
{
	int warmup = harness_on_gpu() ? 5 : 2, n = harness_on_gpu() ? 10 : 5;
	ModelConfig of = c->model;
	of.precision = precision;
	Training t = training_of(&of, batch, true);
	if (t.m->fp8)
		fp8_set(t.m, settings_of(c->fp8));
	device_reset_peak(t.m->device);
	StepStats s = timed_steps(t.m, &t.adamw, &t.batch, MODE_TRAIN, true, warmup,
		n);
	*peak_MiB = t.m->device->total_peak / 1048576.0;
	training_free(&t);
	return s;
}

static void run_speed(Row *row, const void *config)
{
	double bf16_MiB, peak_MiB;
	StepStats bf16 = time_steps(config, POLICY_BF16, &bf16_MiB),
		fp8 = time_steps(config, POLICY_FP8, &peak_MiB);
	row_set_steps(row, &fp8);
	row_set_time(row, "bf16", bf16.step);
	row_set(row, "of_bf16", "%.4f", fp8.step.median / bf16.step.median);
	row_set(row, "peak_MiB", "%.1f", peak_MiB);
	row_set(row, "bf16_MiB", "%.1f", bf16_MiB);
	row_set(row, "loss", "%.6f", fp8.loss);
	row_set(row, "bf16_loss", "%.6f", bf16.loss);
}

// time the matmuls and casts of a layer
#define LAYERS "qkv|output|gate_up|w2"
#define PASSES "forward|input|weight"
typedef struct GemmConfig {
	int size, layer, pass;
	Fp8Config fp8;
} GemmConfig;
static const Key gemm_keys[] = { KEY(GemmConfig, size, SIZES),
	KEY(GemmConfig, layer, LAYERS), KEY(GemmConfig, pass, PASSES),
	{ "scaling", KEY_CHOICE, offsetof(GemmConfig, fp8.scaling), FP8_SCALINGS },
	{ "gradient", KEY_CHOICE, offsetof(GemmConfig, fp8.gradient),
		FP8_GRADIENTS }, { 0 } };

static void add_gemm(Plan *plan, const void *of, Fp8Config c)
{
	GemmConfig config = *(const GemmConfig *)of;
	config.fp8 = c;
	if (c.scaling != FP8_DELAYED)      /* its matmuls are those of a tensor */
		plan_add(plan, &config);
}

static void plan_gemm(Plan *plan)
{
	static const int sizes[] = { SIZE_XL, SIZE_2_7B };
	bool gpu = harness_on_gpu();
	for (int i = 0; i < (size < 0 && gpu ? 2 : 1); i++)
		for (int layer = 0; layer < 4; layer++)
			for (int pass = 0; pass < 3; pass++)
				for_each_fp8(plan, &(GemmConfig){ size >= 0 ? size : gpu
					? sizes[i] : SIZE_SMALL, layer, pass }, add_gemm);
}

// make the operands of a timed matmul
static Fp8Gemm operands_of(Device *d, const GemmConfig *c)
{
	long T = context ? context : harness_on_gpu() ? 512 : 512 / SCALE;
	Shape s = studied_shape(c->size, T);
	size_t N = batch * T, C = s.d_model, A = s.heads * s.d_head, F = s.d_ff,
		rows[] = { 3 * A, C, 2 * F, C }, columns[] = { C, A, C, F },
		r = rows[c->layer], k = columns[c->layer];
	const Fp8Gemm of[] = { { .m = N, .n = r, .k = k }, { .m = N, .n = k,
		.k = r }, { .m = r, .n = k, .k = N } };
	Fp8Gemm g = of[c->pass];
	Fp8Settings by = settings_of(c->fp8);
	fp8_gemm_new(d, &g, by.scaling, c->pass ? by.gradient : E4M3, c->pass == 2
		? TYPE_REAL : BF16, harness_seed);
	return g;
}

// time one matmul and the cast before it
static void queue_bf16(void *arg)
{
	const Fp8Gemm *g = arg;
	ops_for(g->device)->matmul(g->device, g->C, g->A, g->B, (Matmul){ .m = g->m,
		.n = g->n, .k = g->k, .trans_b = true, .lda = g->k, .ldb = g->k,
		.ldc = g->n, .alpha = 1 });
}

static void run_gemm(Row *row, const void *config)
{
	Device *d = harness_device();
	Fp8Gemm g = operands_of(d, config);
	int runs = harness_on_gpu() ? 21 : 5;
	double gflop = 2e-9 * g.m * g.n * g.k;
	Timing cast = timed(d, fp8_gemm_cast, &g, runs), fp8 = timed(d,
		fp8_gemm_multiply, &g, runs), bf16 = timed(d, queue_bf16, &g, runs);
	row_set(row, "m", "%zu", g.m);
	row_set(row, "n", "%zu", g.n);
	row_set(row, "k", "%zu", g.k);
	row_set(row, "fp8_us", "%.3f", 1e3 * fp8.ms);
	row_set(row, "fp8_sd_us", "%.3f", 1e3 * fp8.sd_ms);
	row_set(row, "bf16_us", "%.3f", 1e3 * bf16.ms);
	row_set(row, "bf16_sd_us", "%.3f", 1e3 * bf16.sd_ms);
	row_set(row, "cast_us", "%.3f", 1e3 * cast.ms);
	row_set(row, "fp8_TFlops", "%.4g", gflop / fp8.ms);
	row_set(row, "bf16_TFlops", "%.4g", gflop / bf16.ms);
	row_set(row, "of_bf16", "%.4f", fp8.ms / bf16.ms);
	/* of bf16 read, and two copies of codes written */
	row_set(row, "cast_GBps", "%.4g", 4e-6 * g.m * g.k / cast.ms);
	fp8_gemm_free(&g);
}

// plan and run the errors of matmuls
typedef struct ErrorConfig {
	const char *data;
	int left;                        /* of TYPES */
	const char *scaling;
	Fp8ErrorCase of;
} ErrorConfig;
static const Key error_keys[] = { KEY(ErrorConfig, data),
	KEY(ErrorConfig, left, TYPES), KEY(ErrorConfig, scaling), { 0 } };

static void add_error(Plan *plan, const char *data, Type left, const char *by,
	Fp8ErrorCase of)
{
	of.left = left;
	of.right = left == BF16 ? BF16 : E4M3;
	plan_add(plan, &(ErrorConfig){ data, left, by, of });
}

static void plan_errors(Plan *plan)
{
	static const struct { const char *name; double sd, outlier; } data[] = {
		{ "normal", 1, 0 }, { "outlier", 1, 1e4 },
		{ "outlier among small", 1e-3, 1e4 } };
	static const char *const names[] = { CHOICE_NAMES(FP8_SCALINGS_OF) };
	bool gpu = harness_on_gpu();
	for (int i = 0; i < 3; i++) {
		Fp8ErrorCase of = { gpu ? 2048 : 256, gpu ? 2560 : 192, gpu ? 2560 : 768,
			data[i].sd, data[i].outlier };
		add_error(plan, data[i].name, BF16, "none", of);
		for (int t = 0; t < 2; t++)
			for (int s = FP8_TENSOR; s < NFP8_SCALINGS; s++) {
				of.scaling = s;
				if (chosen(scaling, s))
					add_error(plan, data[i].name, t ? E5M2 : E4M3, names[s], of);
			}
	}
}

static void run_errors(Row *row, const void *config)
{
	const ErrorConfig *c = config;
	double measured = fp8_error_measured(harness_device(), &c->of,
		harness_seed), predicted = fp8_error_predicted(&c->of);
	row_set(row, "predicted", "%.4e", predicted);
	row_set(row, "measured", "%.4e", measured);
	row_set(row, "of_predicted", "%.4f", measured / predicted);
}

// plan and run learning in FP8
enum { SEEDS = 3, WINDOW_PASSES = 8, LEARN_CONTEXT = 128, LEARN_BATCH = 8 };
typedef struct LearnConfig {
	int size;
	const char *precision, *scaling, *gradient;
	long seed;
	Fp8Config fp8;
} LearnConfig;
static const Key learn_keys[] = { KEY(LearnConfig, size, SIZES),
	KEY(LearnConfig, precision), KEY(LearnConfig, scaling),
	KEY(LearnConfig, gradient), KEY(LearnConfig, seed), { 0 } };

static void add_learning(Plan *plan, const void *of, Fp8Config c)
{
	static const char *const scalings[] = { CHOICE_NAMES(FP8_SCALINGS_OF) },
		*const gradients[] = { CHOICE_NAMES(FP8_GRADIENTS_OF) };
	LearnConfig config = *(const LearnConfig *)of;
	config.precision = "fp8";
	config.scaling = scalings[c.scaling];
	config.gradient = gradients[c.gradient];
	config.fp8 = c;
	plan_add(plan, &config);
}

static void plan_learning(Plan *plan)
{
	for (int s = 0; s < (size < 0 && harness_on_gpu() ? 2 : 1); s++)
		for (int seed = 0; seed < SEEDS; seed++) {
			LearnConfig c = { size >= 0 ? size : s, "bf16", "none", "none",
				harness_seed + seed };
			plan_add(plan, &c);
			for_each_fp8(plan, &c, add_learning);
		}
}

static void run_learning(Row *row, const void *config)
{
	const LearnConfig *c = config;
	const Windows held_out = { WINDOW_PASSES * LEARN_BATCH, LEARN_CONTEXT };
	bool gpu = harness_on_gpu(), fp8 = strcmp(c->precision, "fp8") == 0;
	long n = steps ? steps : gpu ? 1000 : 60, last = 0;
	Text text = text_read(path, 16 * (LEARN_CONTEXT + 1));
	Shape shape = studied_shape(c->size, LEARN_CONTEXT);
	shape.vocab = 256;
	Model *m = model_new(harness_device(), &shape, &policies[fp8 ? POLICY_FP8
		: POLICY_BF16], c->seed);
	if (fp8)
		fp8_set(m, settings_of(c->fp8));
	model_fuse(m);
	TextTraining t = { .m = m, .text = &text, .peak_lr = gpu ? 1e-3 : 3e-3,
		.steps = n, .seed = c->seed, .adamw = adamw_new(m, 1e-3, 0.9, 0.95,
			1e-8, 0.1), .batch = batch_random(LEARN_BATCH, LEARN_CONTEXT, 256,
			c->seed) };
	double train = 0;
	for (long step = 0; step < n; step++) {
		double loss = text_training_step(&t, step).loss;
		if (step >= n - n / 10 - 1)
			train += loss, last++;
	}
	row_set(row, "steps", "%ld", n);
	row_set(row, "train_nats", "%.6f", train / last);
	row_set(row, "held_out_nats", "%.6f", text_held_out_nats(&t, held_out));
	row_set(row, "bigram_nats", "%.6f", text_bigram_nats(&text, held_out));
	batch_free(&t.batch);
	optimizer_free(&t.adamw);
	model_free(&m);
	text_free(&text);
}

// time steps in FP8 beside PyTorch's
static const char theirs[] = "pytorch-best-blocks";
typedef struct PeerConfig {
	const char *impl;
	ModelConfig model;
} PeerConfig;
static const Key peer_keys[] = { { "size", KEY_CHOICE, offsetof(PeerConfig,
	model.size), SIZES }, { "context", KEY_INT, offsetof(PeerConfig,
	model.context) }, KEY(PeerConfig, impl), { "precision", KEY_CHOICE,
	offsetof(PeerConfig, model.precision), PRECISIONS }, { 0 } };

static void plan_peers(Plan *plan)
{
	static const char *const impls[] = { "ours", theirs };
	static const int precisions[] = { POLICY_BF16, POLICY_FP8 };
	ModelConfig models[2];
	int n = timed_models(models);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < (harness_on_gpu() ? 4 : 2); k++) {
			models[i].precision = precisions[k % 2];
			plan_add(plan, &(PeerConfig){ impls[k / 2], models[i] });
		}
}

static void run_peer(Row *row, const void *config)
{
	enum { LIMIT_S = 420 };
	const PeerConfig *c = config;
	const ModelConfig *m = &c->model;
	if (strcmp(c->impl, theirs) == 0) {
		peer_measure(row, LIMIT_S, "pytorch_peer.py", "time --impl best --blocks "
			"--size %s --context %ld --batch %ld --precision %s --seed %ld",
			model_sizes[m->size].name, m->context, batch,
			policies[m->precision].name, harness_seed);
		return;
	}
	double peak_MiB;
	StepStats s = time_steps(&(SpeedConfig){ *m, { FP8_DELAYED,
		FP8_GRADIENT_E5M2 } }, m->precision, &peak_MiB);
	row_set(row, "fwd_ms", "%.4f", s.fwd.median);
	row_set(row, "bwd_ms", "%.4f", s.bwd.median);
	row_set(row, "opt_ms", "%.4f", s.opt.median);
	row_set_time(row, "step", s.step);
	row_set(row, "peak_MiB", "%.1f", peak_MiB);
	row_set(row, "loss", "%.6f", s.loss);
}

// describe the experiment of FP8
const Experiment experiment = {
	.about = "training steps in FP8 beside bf16: time, errors, learning",
	.options = options, .cpu_scale = SCALED,
	.sweeps = SWEEPS(
		{ "speed", speed_keys, plan_speed, run_speed },
		{ "gemm", gemm_keys, plan_gemm, run_gemm },
		{ "errors", error_keys, plan_errors, run_errors },
		{ "learning", learn_keys, plan_learning, run_learning },
		{ "peers", peer_keys, plan_peers, run_peer }),
};
