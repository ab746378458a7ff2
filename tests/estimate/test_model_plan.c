/* plans of a training step: that they fit, and drop no more than they must */
#include <omp.h>

#include "estimate/model_plan.h"
#include "tests/ops/compare.h"
#include "train/step.h"

enum { B = 8, T = 128 };

// test the plans of a small model
static double dropped(const Shape *s, const ModelPlan *p)
{
	return p->drop_gate_up * 2.0 * s->d_ff
		+ p->drop_qkv * 3.0 * s->heads * s->d_head;
}

static void expect_least(const Model *m, double nbytes, const ModelPlan *plan)
{
	ModelPlan p = *plan;
	for (p.drop_gate_up = 0; p.drop_gate_up <= m->shape.layers; p.drop_gate_up++)
		for (p.drop_qkv = 0; p.drop_qkv <= m->shape.layers; p.drop_qkv++)
			if (dropped(&m->shape, &p) < dropped(&m->shape, plan)
				&& model_plan_bytes(m, B, T, NULL, &p) <= nbytes)
				fail_msg("%g bytes: %d and %d blocks drop less than %d and %d",
					nbytes, p.drop_gate_up, p.drop_qkv, plan->drop_gate_up,
					plan->drop_qkv);
}

static void expect_step_within(Model *m, double nbytes, const ModelPlan *plan)
{
	Batch b = batch_random(B, T, m->shape.vocab, 1);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	model_follow(m, plan);
	timed_step(m, &adamw, &b, MODE_TRAIN);
	device_reset_peak(m->device);
	timed_step(m, &adamw, &b, MODE_TRAIN);
	if (!(m->device->total_peak <= 1.003 * nbytes))
		fail_msg("a step takes %zu bytes, planned for %.0f",
			m->device->total_peak, nbytes);
	model_follow(m, &(ModelPlan){ 0 });
	optimizer_free(&adamw);
	batch_free(&b);
}

/* in FP8 a plan drops codes before anything that takes a matmul */
static void codes_are_dropped_first(void **state)
{
	const Shape shape = { 700, T, 64, 160, 4, 4, 16, 10000 };
	Device *d = device_open("cpu");
	Model *m = model_new(d, &shape, &policies[POLICY_FP8], 1);
	ModelPlan plan = { .head_chunk = 64 }, least = { 64, .drop_codes = 4,
		.drop_weight_codes = true };
	model_fuse(m);
	double all = model_plan_bytes(m, B, T, NULL, &plan);
	assert_true(model_plan(m, B, T, NULL, all - 1, 64, &plan));
	assert_true(plan.drop_weight_codes && plan.drop_codes == 0
		&& dropped(&shape, &plan) == 0);
	double weights = model_plan_bytes(m, B, T, NULL, &plan),
		codes = model_plan_bytes(m, B, T, NULL, &least);
	assert_true(codes < weights && weights < all);
	for (int i = 0; i < 4; i++) {
		double nbytes = weights - 1 - i * (weights - 1 - codes) / 3;
		assert_true(model_plan(m, B, T, NULL, nbytes, 64, &plan));
		assert_true(plan.drop_codes > 0 && dropped(&shape, &plan) == 0);
		assert_true(model_plan_bytes(m, B, T, NULL, &plan) <= nbytes);
		expect_step_within(m, nbytes, &plan);
		plan.drop_codes--;
		assert_true(model_plan_bytes(m, B, T, NULL, &plan) > nbytes);
	}
	assert_true(model_plan(m, B, T, NULL, codes - 1, 64, &plan));
	assert_true(plan.drop_codes == 4 && dropped(&shape, &plan) > 0);
	model_free(&m);
	device_close(&d);
}

static void plans_fit_and_drop_least(void **state)
{
	const Shape shape = { 700, T, 64, 160, 4, 4, 16, 10000 };
	Device *d = device_open("cpu");
	Model *m = model_new(d, &shape, &policies[POLICY_BF16_STATE], 1);
	ModelPlan plan = { 9, 9, 9 };
	model_fuse(m);
	double most = model_plan_bytes(m, B, T, NULL, &(ModelPlan){ 0 }),
		least = most;
	for (int i = 0; i < 25; i++)
		least = fmin(least, model_plan_bytes(m, B, T, NULL,
			&(ModelPlan){ 64, i / 5, i % 5 }));
	assert_true(model_plan(m, B, T, NULL, most, 0, &plan));
	assert_true(plan.head_chunk == 0 && dropped(&shape, &plan) == 0);
	for (int i = 0; i < 8; i++) {
		double nbytes = most - 1 - i * (most - 1 - least) / 7;
		if (!model_plan(m, B, T, NULL, nbytes, 0, &plan))
			fail_msg("no plan for %.0f bytes", nbytes);
		assert_true(plan.head_chunk > 0);
		assert_true(model_plan_bytes(m, B, T, NULL, &plan) <= nbytes);
		expect_least(m, nbytes, &plan);
		expect_step_within(m, nbytes, &plan);
	}
	assert_false(model_plan(m, B, T, NULL, least - 1, 0, &plan));
	assert_true(model_plan(m, B, T, NULL, most, 16, &plan));
	assert_true(plan.head_chunk == 16 && dropped(&shape, &plan) == 0);
	assert_false(model_plan(m, B, T, NULL, least - 1, 64, &plan));
	model_free(&m);
	device_close(&d);
}

// test plans that were worked out by hand
static void a_large_model_is_planned(void **state)
{
	const Shape shape = { 151936, 32768, 4096, 11008, 34, 32, 128, 10000 };
	const struct { double less; int gate_up, qkv; } cases[] = { { 0, 0, 0 },
		{ 1, 0, 1 }, { 2e9, 1, 0 }, { 3e9, 0, 2 }, { 4.4e9, 1, 1 },
		{ 5.7e9, 2, 0 } };
	Device *d = device_open("cpu");
	Model *m = model_new_bare(d, &shape, &policies[POLICY_BF16_STATE], 1);
	model_fuse(m);
	Sharding by = { 0, 2, { .stage = 2, .wire = BF16, .exchange = true,
		.early = true } };
	for (int i = 0; i < 12; i++) {
		const Sharding *of = i % 2 ? &by : NULL;
		double all = model_plan_bytes(m, 1, 32768, of,
			&(ModelPlan){ .head_chunk = 4096 });
		ModelPlan plan;
		double nbytes = all - cases[i / 2].less;
		assert_true(model_plan(m, 1, 32768, of, nbytes, 0, &plan));
		if (plan.head_chunk != 4096 || plan.drop_gate_up != cases[i / 2].gate_up
			|| plan.drop_qkv != cases[i / 2].qkv)
			fail_msg("%g bytes less: %d blocks drop gate and up, %d q, k, v",
				cases[i / 2].less, plan.drop_gate_up, plan.drop_qkv);
		assert_true(i > 1 || !model_plan(m, 1, 32768, of, all - 1e12, 0, &plan));
	}
	model_free(&m);
	device_close(&d);
}

// test where probabilities are dropped
static void probabilities_are_dropped_where_they_do_not_fit(void **state)
{
	const Shape shape = { 700, T, 64, 160, 4, 4, 16, 10000 };
	Device *d = device_open("cpu");
	Model *m = model_new(d, &shape, &policies[POLICY_FP32], 1);
	model_fuse(m);
	model_fit_scores(m, B, T, MODE_TRAIN);
	assert_false(m->plan.drop_scores);
	model_set_attention(m, false);
	double all = memory_estimate(m, B, T, true).total, limit = d->limit;
	d->limit = (size_t)(all / 63 * 64) + 64;
	model_fit_scores(m, B, T, MODE_TRAIN);
	assert_false(m->plan.drop_scores);
	d->limit -= 128;
	model_fit_scores(m, B, T, MODE_TRAIN);
	assert_true(m->plan.drop_scores);
	assert_true(memory_estimate(m, B, T, true).total < all);
	d->limit = (size_t)limit;
	model_free(&m);
	device_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(codes_are_dropped_first),
		checked(plans_fit_and_drop_least), checked(a_large_model_is_planned),
		checked(probabilities_are_dropped_where_they_do_not_fit),
	};
	omp_set_num_threads(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
