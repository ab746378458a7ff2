/* the memory estimate of a rank that holds shards, against the device's */
#define _GNU_SOURCE
#include "dist/zero.h"
#include "estimate/memory_estimate.h"
#include "tests/ops/compare.h"
#include "tests/dist/job.h"
#include "train/step.h"

typedef struct EstimateScenario {
	Shape shape;
	int policy, fused, recompute;
	Type wire;
} EstimateScenario;
static const EstimateScenario scenarios[] = {
	{ { 50, 32, 64, 160, 5, 4, 16, 10000 }, POLICY_FP32, 1, 0, FP32 },
	{ { 333, 32, 48, 136, 1, 4, 12, 10000 }, POLICY_FP32, 1, 0, BF16 },
	{ { 77, 32, 64, 160, 2, 4, 16, 10000 }, POLICY_BF16, 1, 0, BF16 },
	{ { 77, 32, 64, 160, 4, 4, 16, 10000 }, POLICY_BF16, 1, 2, FP32 },
	{ { 50, 32, 64, 160, 3, 4, 16, 10000 }, POLICY_FP32, 0, 0, FP32 },
	{ { 77, 32, 64, 160, 2, 4, 16, 10000 }, POLICY_BF16_STATE, 1, 0, BF16 },
	{ { 77, 32, 64, 160, 2, 4, 16, 10000 }, POLICY_BF16_STREAM, 1, 0, BF16 },
};

static void expect_equal(double got, double wanted, const char *what,
	const EstimateScenario *s, const Sharding *by)
{
	if (got != wanted)
		fail_msg("scenario %d, rank %d of %d, stage %d, prefetch %d, %s: %.0f "
			"bytes, derived %.0f", (int)(s - scenarios), by->rank, by->ranks,
			by->settings.stage, by->settings.prefetch, what, got, wanted);
}

// compare a rank's memory with the estimate
static void check_stage(Device *d, Comm *c, const EstimateScenario *s, int stage,
	int prefetch, bool exchange, bool early)
{
	enum { B = 4 };
	const OptimizerSettings adamw = { .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999,
		.eps = 1e-8 };
	size_t before[NCATEGORIES], total = d->total;
	memcpy(before, d->active, sizeof before);
	Model *m = model_new_bare(d, &s->shape, &policies[s->policy], 1);
	if (s->fused)
		model_fuse(m);
	model_recompute(m, s->recompute, false);
	Sharding by = { comm_rank(c), comm_ranks(c), { .stage = stage,
		.prefetch = prefetch, .wire = s->wire, .exchange = exchange,
		.early = early } };
	Zero *z = zero_new(m, c, &by.settings, &adamw_kind, adamw);
	Batch b = batch_random(B, s->shape.context, s->shape.vocab, 1);
	timed_step(m, zero_optimizer(z), &b, MODE_TRAIN);
	device_reset_peak(d);
	timed_step(m, zero_optimizer(z), &b, MODE_TRAIN);
	MemoryEstimate a = memory_estimate_sharded(m, B, s->shape.context, &by);
	for (int k = 0; k < NCATEGORIES; k++)
		expect_equal(d->peak[k] - before[k], a.category[k], category_names[k], s,
			&by);
	expect_equal(d->total_peak - total, a.total, "total", s, &by);
	batch_free(&b);
	zero_free(&z);
	model_free(&m);
}

// try every stage of a scenario
static void check_stages(Device *d, Comm *c, void *scenario)
{
	static const int plans[][4] = { { 1, 0, 0 }, { 2, 0, 0 }, { 3, 0, 0 },
		{ 3, 1, 0 }, { 3, 2, 0 }, { 1, 0, 1 }, { 3, 1, 1 }, { 2, 0, 0, 1 },
		{ 2, 0, 1, 1 } };
	const EstimateScenario *s = scenario;
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
		if (s->fused || !plans[i][2])
			check_stage(d, c, s, plans[i][0], plans[i][1], plans[i][2],
				plans[i][3]);
}

static void estimate_of_a_rank_is_met(void **state)
{
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		for (int ranks = i == 0 ? 1 : 3; ranks <= (i == 0 ? MOST : 3); ranks++)
			in_ranks(ranks, by_ring, check_stages, (void *)&scenarios[i]);
}

TESTS(cmocka_unit_test(estimate_of_a_rank_is_met))
