#include "cases/large_step.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "dist/zero.h"
#include "cases/op_classes.h"
#include "cases/step_probe.h"
#include "cases/text.h"
#include "estimate/model_plan.h"
#include "ops/gemm_choices.h"

// make a large model and its strategy
static const OptimizerSettings settings = { .lr = 1e-4, .beta1 = 0.9,
	.beta2 = 0.999, .eps = 1e-8, .decay = 0.01 };

typedef struct LargeStep {
	StepConfig config;
	DdpCase *run;
	Zero *zero;
} LargeStep;

Shape large_shape(const LargeConfig *c)
{
	return (Shape){ c->vocabulary, c->context, c->d_model, c->d_ff, c->layers,
		c->heads, c->d_model / c->heads, 10000 };
}

static DdpCase *open_ranks(Row *row, const StepConfig *c)
{
	DdpConfig own = { .batch = c->of.batch / c->of.ranks, .ranks = c->of.ranks,
		.transport = c->transport, .sums = c->sums,
		.wire = c->of.precision == POLICY_FP32 ? FP32 : BF16 };
	own.model.context = c->of.context;
	own.model.precision = c->of.precision;
	own.ctas = harness_on_gpu() && c->sums == SUMS_BY_COMM ? 8 : 0;
	Device *d = harness_device();
	DdpCase *run = ddp_case_over(d, ddp_comm(row, d, &own), &own);
	run->unrecorded = true;
	return run;
}

// make the model of a large step
static ZeroSettings zero_settings(const LargeStep *s)
{
	const StepConfig *c = &s->config;
	return (ZeroSettings){ .stage = c->strategy - ZERO1 + 1,
		.prefetch = c->strategy == FSDP, .wire = s->run->config.wire,
		.exchange = c->sums == SUMS_BY_OPTIMIZER,
		.early = c->update == UPDATE_EARLY };
}

static void make_model(LargeStep *s)
{
	const StepConfig *c = &s->config;
	DdpCase *run = s->run;
	Shape shape = large_shape(&c->of);
	run->m = model_new_bare(run->device, &shape, &policies[c->of.precision],
		harness_seed);
	model_fuse(run->m);
	model_recompute(run->m, (int)c->recompute, false);
	run->m->atomic = !c->deterministic;
	run->batch = batch_random(run->config.batch, shape.context, shape.vocab,
		harness_seed + comm_rank(run->comm));
	ZeroSettings shards = zero_settings(s);
	s->zero = zero_new(run->m, run->comm, &shards, &adamw_kind, settings);
	ddp_case_train(run, zero_optimizer(s->zero));
}

// free the model of a large step
static void free_ranks(LargeStep *s)
{
	DdpCase *run = s->run;
	run->m->hooks = run->inner;
	zero_free(&s->zero);
	batch_free(&run->batch);
	model_free(&run->m);
	ddp_case_close(&run);
}

// fit the step into the memory
static Sharding sharding_of(const LargeStep *s)
{
	const DdpCase *run = s->run;
	return (Sharding){ comm_rank(run->comm), comm_ranks(run->comm),
		zero_settings(s) };
}

// choose what to drop
static void fit_memory(LargeStep *s)
{
	DdpCase *run = s->run;
	const LargeConfig *c = &s->config.of;
	Sharding by = sharding_of(s);
	ModelPlan plan = { 0 };
	double most = s->config.memory_MiB * 1048576.0;
	if (most == 0)
		most = run->device->limit / 64.0 * 63;
	if (s->config.recompute == 0 && !model_plan(run->m, run->config.batch,
		c->context, &by, most, c->head_tokens, &plan))
		plan = (ModelPlan){ .drop_gate_up = (int)c->layers,
			.drop_qkv = (int)c->layers,
			.drop_weight_codes = run->m->fp8 != NULL,
			.drop_codes = run->m->fp8 ? (int)c->layers : 0 };
	plan.head_chunk = c->head_tokens;
	plan.drop_gate_up = (int)comm_max(run->comm, plan.drop_gate_up);
	plan.drop_qkv = (int)comm_max(run->comm, plan.drop_qkv);
	plan.drop_codes = (int)comm_max(run->comm, plan.drop_codes);
	plan.drop_weight_codes = comm_max(run->comm, plan.drop_weight_codes) > 0;
	model_follow(run->m, &plan);
}

// time sustained steps
static long steps_in(double seconds, double step_ms)
{
	double n = ceil(seconds * 1e3 / step_ms);
	return n < 1 ? 1 : (long)n;
}

static void choose_algorithms(LargeStep *s, const char *path)
{
	DdpCase *run = s->run;
	GemmChoices *choices = run->device->gemms;
	for (int steps = 0; comm_max(run->comm, choices
		? gemm_choices_counts(choices).begun : 0) > 0; steps++) {
		if (steps == MOST_STEPS_OF_CHOICE)
			die("after %d steps matmuls are still being tried", steps);
		ddp_case_steps(run, 0, 0, 1);
	}
	if (choices && comm_rank(run->comm) == 0)
		gemm_choices_write(choices);
}

// time steps for seconds
static void time_steps(Row *row, LargeStep *s, const StepLength *length)
{
	DdpCase *run = s->run;
	double first_loss = ddp_case_steps(run, 0, 0, 1).loss;
	choose_algorithms(s, length->gemms);
	double one_ms = ddp_case_steps(run, 0, 0, 1).period_ms;
	ddp_case_steps(run, 0, 0, steps_in(length->warmup_s, one_ms));
	long n = steps_in(length->measured_s, one_ms);
	PowerWatch *watch = power_watch(run->device);
	DdpTimes t = ddp_case_steps(run, 0, 0, n);
	PowerFacts power = power_read(&watch);
	ddp_case_set_times(row, &t);
	row_set(row, "step_ms", "%.4f", t.period_ms);
	row_set(row, "steps", "%ld", n);
	row_set(row, "first_loss", "%.6f", first_loss);
	row_set_power(row, &power, (int)n);
	double flops = 0;
	Shape shape = large_shape(&s->config.of);
	for (int i = 0; i < NPARTS_OF_STEP; i++)
		flops += step_part_flops(&shape, run->config.batch, i);
	row_set(row, "TFLOP", "%.6g", flops * 1e-12);
	row_set(row, "TFLOP_per_s", "%.6g", flops / t.period_ms * 1e-9);
}

// time the classes of a step
static void time_classes(Row *row, LargeStep *s)
{
	DdpCase *run = s->run;
	double ms[NCLASSES], sent = 0;
	run->m->hooks = run->inner;
	watch_classes(run->device, true);
	timed_step(run->m, run->optimizer, &run->batch, MODE_TRAIN);
	sum_classes(run->device, ms);
	watch_classes(run->device, false);
	for (int i = 0; i < NCLASSES; i++)
		row_set(row, class_columns[i], "%.4f", comm_max(run->comm, ms[i]));
	DdpTimes t = ddp_case_steps(run, WATCH_COMM, 0, 1);
	row_set(row, "comm_ms", "%.4f", t.comm_ms);
	row_set(row, "blocked_ms", "%.4f", t.blocked_ms);
	for (int kind = 0; kind < NCOLLECTIVES; kind++)
		sent += run->sent[kind];
	row_set(row, "sent_MB", "%.4f", sent * 1e-6);
	row_set(row, "via", "%s", comm_transport(run->comm));
}

// find the memory of a large step
static void set_memory(Row *row, const LargeStep *s)
{
	const double MiB = 1 << 20;
	const DdpCase *run = s->run;
	double workspace = (double)run->device->active[MEM_TEMPORARY];
	Sharding by = sharding_of(s);
	MemoryEstimate e = memory_estimate_sharded(run->m, run->config.batch,
		run->config.model.context, &by);
	row_set(row, "peak_MiB", "%.3f",
		(run->device->total_peak - workspace) / MiB);
	row_set(row, "derived_MiB", "%.3f", e.total / MiB);
	row_set(row, "drop_gate_up", "%d", run->m->plan.drop_gate_up);
	row_set(row, "drop_qkv", "%d", run->m->plan.drop_qkv);
	row_set(row, "drop_codes", "%d", run->m->plan.drop_codes);
	row_set(row, "drop_weight_codes", "%s", run->m->plan.drop_weight_codes
		? "yes" : "no");
	row_set(row, "workspace_MiB", "%.3f", workspace / MiB);
}

// run a large step
void large_step_run(Row *row, const StepConfig *c, const StepLength *length)
{
	LargeStep s = { *c, open_ranks(row, c), NULL };
	DdpCase *run = s.run;
	Device *d = run->device;
	if (length->gemms)
		d->gemms = gemm_choices_of(d, length->gemms);
	GemmChoices *choices = d->gemms;
	device_reset_peak(d);
	make_model(&s);
	fit_memory(&s);
	time_steps(row, &s, length);
	set_memory(row, &s);
	time_classes(row, &s);
	free_ranks(&s);
	gemm_choices_free(&choices);
}

void large_step_dry(Row *row, const StepConfig *c)
{
	LargeStep s = { *c, open_ranks(row, c), NULL };
	DdpCase *run = s.run;
	make_model(&s);
	fit_memory(&s);
	for (int i = 0; i < 2; i++) {
		device_reset_peak(run->device);
		timed_step(run->m, run->optimizer, &run->batch, MODE_TRAIN);
	}
	set_memory(row, &s);
	free_ranks(&s);
}

// train on a text
static void text_batch(LargeStep *s, const Text *text, long step)
{
	Batch *b = &s->run->batch;
	Comm *comm = s->run->comm;
	text_windows(text, 0, text->ntrain, harness_seed,
		step * comm_ranks(comm) + comm_rank(comm), b->B, b->T, b->tokens,
		b->targets);
}

static double mean_loss(Comm *comm, double loss)
{
	int ranks = comm_ranks(comm);
	double *all = need(calloc(ranks, sizeof *all)), sum = 0;
	all[comm_rank(comm)] = loss;
	comm_gather_host(comm, all, sizeof *all);
	for (int r = 0; r < ranks; r++)
		sum += all[r];
	free(all);
	return sum / ranks;
}

// train a large model on a text
void large_step_learn(Row *row, const StepConfig *c, const TextRun *how)
{
	LargeStep s = { *c, open_ranks(row, c), NULL };
	Text text = text_read(how->path, text_least(&c->of));
	make_model(&s);
	fit_memory(&s);
	s.run->optimizer->settings.lr = how->rate;
	for (long step = 0; step <= how->steps; step++) {
		text_batch(&s, &text, step);
		double loss = ddp_case_steps(s.run, 0, 0, 1).loss;
		row_set(row, "step", "%ld", step);
		row_set(row, "loss", "%.6f", mean_loss(s.run->comm, loss));
		row_set(row, "rate", "%g", how->rate);
		row_set(row, "bytes", "%zu", text.n);
		row_emit(row);
	}
	text_free(&text);
	free_ranks(&s);
}
