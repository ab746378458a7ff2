/* leaderboard: one training step of a model of eight billion parameters */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/stats.h"
#include "cases/large_errors.h"
#include "cases/large_step.h"
#include "cases/step_probe.h"
#include "cases/text.h"
#include "ops/gemm_choices.h"

// state the model of the task
static LargeConfig given = { .precision = -1, .batch = 2, .ranks = 2 };
static StepLength length = { .warmup_s = -1 };
static StepConfig how = { .strategy = -1, .sums = SUMS_BY_OPTIMIZER,
	.update = UPDATE_EARLY, .deterministic = true };
static bool atomic;
static const char *gold;
#define REFERENCES_OF(FIRST, NEXT) \
	FIRST(REFERENCE_FP64, "fp64") NEXT(REFERENCE_FP32, "fp32")
enum { CHOICE_IDS(REFERENCES_OF) };
static const char *const references[] = { CHOICE_NAMES(REFERENCES_OF) };
static int reference = REFERENCE_FP64;
static TextRun text_run = { .path = "writeup.nw", .steps = 20 };

// list the options of leaderboard
static const Option options[] = {
	{ "vocabulary", OPT_INT, &given.vocabulary, "1..1048576", "tokens" },
	D_MODEL_OPTION(&given.d_model, "1..65536", "width"),
	D_FF_OPTION(&given.d_ff, "1..262144", "hidden width"),
	LAYERS_OPTION(&given.layers, "1..512", "blocks"),
	HEADS_OPTION(&given.heads, "1..1024", "heads of attention"),
	CONTEXT_OPTION_IN(&given.context, "1..262144",
		"tokens in a sequence"),
	BATCH_OPTION_IN(&given.batch, "1..4096", "sequences of all ranks"),
	PRECISION_OPTION_FOR(&given.precision,
		"number format; otherwise bf16-state and bf16-stream, on a CPU fp32 "
		"and bf16-state, and of a probe bf16, on a CPU fp32"),
	RANKS_OPTION(&given.ranks),
	{ "head-tokens", OPT_INT, &given.head_tokens, "0..262144",
		"of which there are logits at a time; 0: an eighth of a sequence" },
	STRATEGY_OPTION(&how.strategy, STRATEGIES,
		"zero2 or fsdp; otherwise both"),
	TRANSPORT_OPTION(&how.transport),
	SUMS_OPTION(&how.sums),
	UPDATE_OPTION(&how.update,
		"of zero2: behind the backward pass, or inside; otherwise early"),
	{ "recompute", OPT_INT, &how.recompute, "0..512",
		"blocks at a time that are run again; 0: none" },
	{ "atomic", OPT_FLAG, &atomic, "",
		"steps add gradients of queries as they come; otherwise on a GPU both "
		"so and in order" },
	{ "memory-MiB", OPT_INT, &how.memory_MiB, "0..1048576",
		"of a rank, without workspaces; 0: what its device has" },
	{ "gemms", OPT_TEXT, &length.gemms, "FILE",
		"of matmuls' algorithms; what it lacks is timed" },
	{ "warmup-s", OPT_REAL, &length.warmup_s, "S",
		"seconds before measuring; otherwise 10, on a CPU 0.2" },
	{ "measured-s", OPT_REAL, &length.measured_s, "S",
		"measured seconds; otherwise 30, on a CPU 1" },
	{ "gold", OPT_TEXT, &gold, "FILE",
		"of golden vectors and PyTorch's errors; otherwise PyTorch makes one" },
	{ "reference", OPT_CHOICE, &reference, CHOICES(REFERENCES_OF),
		"what PyTorch makes golden vectors with" },
	TEXT_OPTION(&text_run.path),
	{ "rate", OPT_REAL, &text_run.rate, "R",
		"learning rate of that; otherwise 1e-4, on a CPU 3e-3" },
	{ 0 } };

// settle the options by the device
static void settle_shape(const long of_gpu[6], const long of_cpu[6])
{
	long *const to[] = { &given.vocabulary, &given.d_model, &given.d_ff,
		&given.layers, &given.heads, &given.context };
	for (int i = 0; i < 6; i++)
		if (*to[i] == 0)
			*to[i] = harness_on_gpu() ? of_gpu[i] : of_cpu[i];
}

static void settle_options(void)
{
	settle_shape((long[]){ 151936, 4096, 11008, 34, 32, 32768 },
		(long[]){ 2374, 64, 172, 4, 2, 128 });
	if (given.head_tokens == 0)
		given.head_tokens = given.context / 8 ? given.context / 8 : 1;
	if (length.warmup_s < 0)
		length.warmup_s = harness_on_gpu() ? 10 : 0.2;
	if (length.measured_s <= 0)
		length.measured_s = harness_on_gpu() ? 30 : 1;
	if (given.d_model % (2 * given.heads) != 0)
		usage_error("--d-model %ld: expected a multiple of %ld, twice --heads",
			given.d_model, 2 * given.heads);
	if (given.batch % given.ranks != 0)
		usage_error("--batch %ld: expected a multiple of --ranks, %ld",
			given.batch, given.ranks);
	if (given.precision == POLICY_FP16 || given.precision == POLICY_TF32)
		usage_error("--precision %s: expected fp32, bf16, bf16-stream, "
			"bf16-state or fp8", policies[given.precision].name);
	if (how.strategy >= 0 && how.strategy < ZERO2)
		usage_error("--strategy: expected zero2 or fsdp");
	if (given.precision == POLICY_FP8 && how.strategy == FSDP)
		usage_error("--precision fp8: FSDP gathers no codes, expected zero2");
	if (given.precision == POLICY_FP8)
		how.strategy = ZERO2;
	if (how.sums == SUMS_BY_OPTIMIZER && given.ranks > MOST_GRADIENTS)
		usage_error("--sums optimizer is for %d ranks at most", MOST_GRADIENTS);
	// look at the file of algorithms before long work
	if (length.gemms) {
		GemmChoices *all = gemm_choices_read(length.gemms, "");
		gemm_choices_free(&all);
		file_try(length.gemms, NULL, true);
	}
}

// plan probes
typedef struct ProbeConfig {
	LargeConfig of;
	bool deterministic, copies;
	int algorithms;
} ProbeConfig;
#define ALGORITHMS_OF(FIRST, NEXT) \
	FIRST(FIRST_FOUND, "first") NEXT(TIMED, "timed")
enum { CHOICE_IDS(ALGORITHMS_OF) NALGORITHMS };
static const Key probe_keys[] = { LARGE_KEYS, KEY(ProbeConfig, deterministic),
	KEY(ProbeConfig, algorithms, CHOICES(ALGORITHMS_OF)),
	KEY(ProbeConfig, copies), { 0 } };

static void plan_probes(Plan *plan)
{
	settle_options();
	if (given.precision == POLICY_FP8)
		usage_error("--precision fp8: a probe multiplies in bf16 or fp32");
	ProbeConfig c = { given, true, false, FIRST_FOUND };
	if (given.precision < 0)
		c.of.precision = harness_on_gpu() ? POLICY_BF16 : POLICY_FP32;
	for (; c.algorithms <= (length.gemms ? TIMED : FIRST_FOUND); c.algorithms++)
		for (int atomic = 0; atomic < (harness_on_gpu() ? 2 : 1); atomic++)
			for (int copies = 0; copies < 2; copies++) {
				c.deterministic = !atomic;
				c.copies = copies;
				plan_add(plan, &c);
			}
}

// run a probe until the clock has settled
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

// emit the times of a part
static void emit_part(Row *row, const Sustained *s, int i, double flops,
	const PowerFacts *power)
{
	Stats ms = stats_of(s->ms[i], s->n);
	row_set(row, "part", "%s", i < NPARTS_OF_STEP ? step_parts[i] : "step");
	row_set(row, "TFLOP", "%.6g", flops * 1e-12);
	row_set(row, "part_ms", "%.4f", ms.median);
	row_set(row, "part_sd_ms", "%.4f", ms.sd);
	row_set(row, "TFLOP_per_s", "%.6g", flops / ms.median * 1e-9);
	row_set(row, "steps", "%d", s->n);
	row_set_power(row, power, s->n);
	row_emit(row);
}

// run a probe for seconds
static void run_probe(Row *row, const void *config)
{
	const ProbeConfig *c = config;
	Shape shape = large_shape(&c->of);
	size_t batch = c->of.batch / c->of.ranks;
	Device *d = harness_device();
	if (c->algorithms == TIMED)
		d->gemms = gemm_choices_of(d, length.gemms);
	StepProbe *p = step_probe(d, &shape, &(ProbeSettings){ batch, c->of.ranks,
		c->of.head_tokens, policies[c->of.precision].op[OP_LINEAR].input,
		c->deterministic, c->copies, harness_seed });
	Sustained *s = need(malloc(sizeof *s));
	// repeat steps until every matmul has its algorithm
	int steps = 0;
	do {
		if (steps++ == MOST_STEPS_OF_CHOICE)
			die("after %d steps matmuls are still being tried", steps - 1);
		measure_steps(p, s, 0);
	} while (d->gemms && gemm_choices_counts(d->gemms).begun > 0);
	if (d->gemms)
		gemm_choices_write(d->gemms);
	measure_steps(p, s, length.warmup_s);
	PowerWatch *watch = power_watch(d);
	measure_steps(p, s, length.measured_s);
	PowerFacts power = power_read(&watch);
	step_probe_check(p);
	// emit the parts and the step
	double all = 0;
	for (int i = 0; i < NPARTS_OF_STEP - !c->copies; i++) {
		double flops = step_part_flops(&shape, batch, i);
		all += flops;
		emit_part(row, s, i, flops, &power);
	}
	emit_part(row, s, NPARTS_OF_STEP, all, &power);
	gemm_choices_free(&d->gemms);
	step_probe_free(&p);
	free(s);
}

// plan and run large steps
static const Key step_keys[] = { STEP_KEYS, { 0 } };

static int step_ranks(const void *config)
{
	return (int)((const StepConfig *)config)->of.ranks;
}

static void plan_steps(Plan *plan)
{
	settle_options();
	StepConfig c = how;
	int gpu = harness_on_gpu(), usual[] = { POLICY_BF16_STATE,
		gpu ? POLICY_BF16_STREAM : POLICY_FP32 };
	for (int s = ZERO2; s <= FSDP; s++)
		for (int p = 0; p < (given.precision < 0 ? 2 : 1); p++) {
			if (how.strategy >= 0 && how.strategy != s)
				continue;
			c.of = given;
			c.of.precision = given.precision < 0 ? usual[p] : given.precision;
			c.strategy = s;
			c.update = s == ZERO2 ? how.update : UPDATE_LATE;
			c.deterministic = !atomic;
			plan_add(plan, &c);
			c.deterministic = false;
			if (gpu && !atomic && s == ZERO2)
				plan_add(plan, &c);
		}
}

/* the same step with masters in fp32, in either type of the blocks' matmuls */
static void plan_fp8(Plan *plan)
{
	if (given.precision >= 0 || how.strategy >= 0)
		usage_error("--sweep fp8: no --precision and no --strategy, it has bf16 "
			"and fp8 by zero2");
	settle_options();
	StepConfig c = how;
	c.of = given;
	c.strategy = ZERO2;
	c.deterministic = !atomic;
	for (int p = 0; p < 2; p++) {
		c.of.precision = p == 0 ? POLICY_BF16 : POLICY_FP8;
		plan_add(plan, &c);
	}
}

// run a large step of a row
static void run_step(Row *row, const void *config)
{
	large_step_run(row, config, &length);
}

static void dry_step(Row *row, const void *config)
{
	large_step_dry(row, config);
}

// have golden vectors made, and plan their comparison
static const Key error_keys[] = { LARGE_SHAPE, KEY(LargeConfig, head_tokens),
	{ 0 } };

static void plan_errors(Plan *plan)
{
	if (gold)
		large_errors_shape(&given, gold);
	settle_shape((long[]){ 151936, 4096, 11008, 4, 32, 512 },
		(long[]){ 4099, 256, 688, 4, 4, 128 });
	settle_options();
	plan_add(plan, &given);
}

// have PyTorch make golden vectors
/* returns the exit status of the script */
static int make_golden(const LargeConfig *c, const char *path)
{
	char *command, *out = process_word(path);
	if (asprintf(&command, "exec python3 src/experiments/pytorch_golden.py "
		"errors --out %s --vocabulary %ld --d-model %ld --d-ff %ld --layers %ld "
		"--heads %ld --context %ld --batch %ld --seed %ld --reference %s", out,
		c->vocabulary, c->d_model, c->d_ff, c->layers, c->heads, c->context,
		c->batch, harness_seed, references[reference]) < 0)
		die("out of host memory");
	int status = system(command);
	free(command);
	free(out);
	return WEXITSTATUS(status);
}

// compare errors with a file of golden vectors
static void run_errors(Row *row, const void *config)
{
	static const int usual[] = { POLICY_FP32, POLICY_BF16, POLICY_BF16_STREAM,
		POLICY_BF16_STATE };
	char *folder = gold ? NULL : process_folder("golden"), *made = NULL;
	if (folder && asprintf(&made, "%s/vectors", folder) < 0)
		die("out of host memory");
	int failed = gold ? 0 : make_golden(config, made);
	if (failed)
		row_skip(row, "PyTorch could not run (exit %d)", failed);
	else
		large_errors_run(row, config, gold ? gold : made, given.precision < 0
			? usual : &given.precision, given.precision < 0 ? 4 : 1);
	if (!gold) {
		unlink(made);
		rmdir(folder);
	}
	free(made);
	free(folder);
}

// plan and run what learns a text
static void plan_learning(Plan *plan)
{
	if (how.strategy < 0)
		how.strategy = ZERO2;
	plan_steps(plan);
	Text text = text_read(text_run.path, text_least(&given));
	text_free(&text);
	if (given.vocabulary < 256)
		usage_error("--vocabulary %ld: a text has 256 different bytes",
			given.vocabulary);
	if (text_run.rate <= 0)
		text_run.rate = harness_on_gpu() ? 1e-4 : 3e-3;
}

static void run_learning(Row *row, const void *config)
{
	large_step_learn(row, config, &text_run);
}

const Experiment experiment = {
	.about = "one training step of a model of eight billion parameters",
	.options = options, .cpu_scale = "small (widths and vocabulary divided by "
		"16 to 64, context by 256; 4 layers)",
	.sweeps = SWEEPS(
		{ "step", step_keys, plan_steps, run_step,
			.ranks = step_ranks, .dry = dry_step },
		{ "fp8", step_keys, plan_fp8, run_step,
			.ranks = step_ranks, .dry = dry_step },
		{ "probe", probe_keys, plan_probes, run_probe },
		{ "errors", error_keys, plan_errors, run_errors },
		{ "learn", step_keys, plan_learning, run_learning,
			.ranks = step_ranks }),
};
