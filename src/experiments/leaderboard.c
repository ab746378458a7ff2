/* leaderboard: one training step of a model of eight billion parameters */
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/stats.h"
#include "bench/harness.h"
#include "bench/power.h"
#include "experiments/step_probe.h"
#include "model/precision.h"
#include "ops/gemm_choices.h"

typedef struct LargeConfig {
	long vocabulary, d_model, d_ff, layers, heads, context;
	long batch;                      /* sequences of all ranks */
	int precision;
	long ranks;
} LargeConfig;
#define LARGE_KEYS KEY(LargeConfig, vocabulary), KEY(LargeConfig, d_model), \
	KEY(LargeConfig, d_ff), KEY(LargeConfig, layers),                       \
	KEY(LargeConfig, heads), KEY(LargeConfig, context),                     \
	KEY(LargeConfig, batch), KEY(LargeConfig, precision, PRECISIONS),       \
	KEY(LargeConfig, ranks)

static LargeConfig given = { .precision = -1, .batch = 2, .ranks = 2 };
static double warmup_s = -1, measured_s;
static long head_tokens;
static const char *gemms;
static const Option options[] = {
	{ "vocabulary", OPT_INT, &given.vocabulary, "1..1048576", "tokens" },
	{ "d-model", OPT_INT, &given.d_model, "1..65536", "width" },
	{ "d-ff", OPT_INT, &given.d_ff, "1..262144", "hidden width" },
	{ "layers", OPT_INT, &given.layers, "1..512", "blocks" },
	{ "heads", OPT_INT, &given.heads, "1..1024", "heads of attention" },
	{ "context", OPT_INT, &given.context, "1..262144",
		"tokens in a sequence" },
	{ "batch", OPT_INT, &given.batch, "1..4096", "sequences of all ranks" },
	{ "precision", OPT_CHOICE, &given.precision, PRECISIONS,
		"number format; otherwise bf16, on a CPU fp32" },
	{ "ranks", OPT_INT, &given.ranks, "1..64", "processes of a job" },
	{ "head-tokens", OPT_INT, &head_tokens, "0..262144",
		"of which there are logits at a time; 0: an eighth of a sequence" },
	{ "gemms", OPT_TEXT, &gemms, "FILE",
		"of matmuls' algorithms; what it lacks is timed" },
	{ "warmup-s", OPT_REAL, &warmup_s, "S",
		"seconds before measuring; otherwise 10, on a CPU 0.2" },
	{ "measured-s", OPT_REAL, &measured_s, "S",
		"measured seconds; otherwise 30, on a CPU 1" },
	{ 0 } };

static void settle_options(void)
{
	static const LargeConfig task = { 151936, 4096, 11008, 34, 32, 32768, 0,
		POLICY_BF16, 0 }, small = { 2374, 64, 172, 4, 2, 128, 0, POLICY_FP32, 0 };
	const LargeConfig *usual = harness_on_gpu() ? &task : &small;
	long *const to[] = { &given.vocabulary, &given.d_model, &given.d_ff,
		&given.layers, &given.heads, &given.context };
	const long from[] = { usual->vocabulary, usual->d_model, usual->d_ff,
		usual->layers, usual->heads, usual->context };
	for (int i = 0; i < 6; i++)
		*to[i] = *to[i] ? *to[i] : from[i];
	if (given.precision < 0)
		given.precision = usual->precision;
	if (warmup_s < 0)
		warmup_s = harness_on_gpu() ? 10 : 0.2;
	if (measured_s <= 0)
		measured_s = harness_on_gpu() ? 30 : 1;
	if (given.d_model % (2 * given.heads) != 0)
		usage_error("--d-model %ld: expected a multiple of %ld, twice --heads",
			given.d_model, 2 * given.heads);
	if (given.batch % given.ranks != 0)
		usage_error("--batch %ld: expected a multiple of --ranks, %ld",
			given.batch, given.ranks);
	if (given.precision != POLICY_FP32 && given.precision != POLICY_BF16)
		usage_error("--precision: expected fp32 or bf16");
	if (gemms) {
		GemmChoices *all = gemm_choices_read(gemms, "");
		gemm_choices_free(&all);
		file_try(gemms, NULL, true);
	}
}

static Shape shape_of(const LargeConfig *c)
{
	return (Shape){ c->vocabulary, c->context, c->d_model, c->d_ff, c->layers,
		c->heads, c->d_model / c->heads, 10000 };
}
typedef struct ProbeConfig {
	LargeConfig of;
	bool deterministic;
	int algorithms;
	long head_tokens;
} ProbeConfig;
#define ALGORITHMS "first|timed"
static const Key probe_keys[] = { LARGE_KEYS, KEY(ProbeConfig, deterministic),
	KEY(ProbeConfig, algorithms, ALGORITHMS), KEY(ProbeConfig, head_tokens),
	{ 0 } };

static void plan_probes(Plan *plan)
{
	settle_options();
	long chunk = given.context / 8 ? given.context / 8 : 1;
	ProbeConfig c = { given, true, 0, head_tokens ? head_tokens : chunk };
	for (c.algorithms = 0; c.algorithms <= (gemms != NULL); c.algorithms++)
		for (int atomic = 0; atomic < (harness_on_gpu() ? 2 : 1); atomic++) {
			c.deterministic = !atomic;
			plan_add(plan, &c);
		}
}
enum { MOST_STEPS = 1 << 16 };
typedef struct Sustained {
	int n;
	double ms[NPARTS_OF_STEP + 1][MOST_STEPS];   /* of parts, then of all */
} Sustained;

static void measure_steps(StepProbe *p, Sustained *s, double seconds)
{
	double start = clock_ms(), part[NPARTS_OF_STEP];
	s->n = 0;
	do {
		s->ms[NPARTS_OF_STEP][s->n] = step_probe_run(p, part);
		for (int i = 0; i < NPARTS_OF_STEP; i++)
			s->ms[i][s->n] = part[i];
		s->n++;
	} while (clock_ms() - start < seconds * 1e3 && s->n < MOST_STEPS);
}

static void emit_part(Row *row, const Sustained *s, int i, double flops)
{
	Stats ms = stats_of(s->ms[i], s->n);
	row_set(row, "part", "%s", i < NPARTS_OF_STEP ? step_parts[i] : "step");
	row_set(row, "TFLOP", "%.6g", flops * 1e-12);
	row_set(row, "ms", "%.4f", ms.median);
	row_set(row, "ms_sd", "%.4f", ms.sd);
	row_set(row, "TFLOP_per_s", "%.4f", flops / ms.median * 1e-9);
	row_set(row, "steps", "%d", s->n);
	row_emit(row);
}

static void run_probe(Row *row, const void *config)
{
	const ProbeConfig *c = config;
	Shape shape = shape_of(&c->of);
	size_t batch = c->of.batch / c->of.ranks;
	Device *d = harness_device();
	if (c->algorithms)
		d->gemms = gemm_choices_of(d, gemms);
	StepProbe *p = step_probe(d, &shape, batch, c->head_tokens,
		policies[c->of.precision].op[OP_LINEAR].input, c->deterministic,
		harness_seed);
	Sustained *s = need(malloc(sizeof *s));
	do {
		measure_steps(p, s, 0);
	} while (d->gemms && gemm_choices_begun(d->gemms) > 0);
	measure_steps(p, s, warmup_s);
	PowerWatch *watch = power_watch(d);
	measure_steps(p, s, measured_s);
	PowerFacts power = power_read(&watch);
	step_probe_check(p);
	if (d->gemms)
		gemm_choices_write(d->gemms);
	double all = 0;
	row_set_power(row, &power, s->n);
	for (int i = 0; i < NPARTS_OF_STEP; i++) {
		double flops = step_part_flops(&shape, batch, i);
		all += flops;
		emit_part(row, s, i, flops);
	}
	emit_part(row, s, NPARTS_OF_STEP, all);
	gemm_choices_free(&d->gemms);
	step_probe_free(&p);
	free(s);
}

static const Sweep sweeps[] = {
	{ .name = "probe", .keys = probe_keys, .plan = plan_probes,
		.values = "part TFLOP ms ms_sd TFLOP_per_s steps " POWER_VALUES,
		.run = run_probe },
	{ 0 }
};

const Experiment experiment = {
	.name = "leaderboard", .options = options, .sweeps = sweeps,
	.about = "one training step of a model of eight billion parameters",
	.cpu_scale = "small (widths and vocabulary divided by 64, context by 256; "
		"4 layers, 2 heads)",
};
