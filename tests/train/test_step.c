#include <math.h>

#include "tests/base/program.h"
#include "train/step.h"

static double flops;
static const Ops *real_ops;

static void counting_matmul(Device *d, Array C, Array A, Array B, Matmul s)
{
	double matrices = (s.outer ? s.outer : 1.0) * (s.inner ? s.inner : 1.0);
	flops += 2.0 * s.m * s.n * s.k * matrices;
	real_ops->matmul(d, C, A, B, s);
}

static const Shape shape = { 50, 40, 48, 100, 3, 4, 12, 10000 };

// test that the formulas count what the engine does
static void formulas_count_what_is_done(void **state)
{
	enum { B = 3, T = 17 };
	Device *d = device_open("cpu");
	Ops ops = *ops_for(d);
	real_ops = ops_for(d);
	ops.matmul = counting_matmul;
	d->ops = &ops;
	Model *m = model_new(d, &shape, &policies[POLICY_FP32], 1);
	Batch b = batch_random(B, T, shape.vocab, 1);
	timed_step(m, NULL, &b, MODE_FORWARD);
	assert_true(flops == forward_flops(&shape, B, T));
	flops = 0;
	timed_step(m, NULL, &b, MODE_FORWARD_BACKWARD);
	assert_true(flops == 3 * forward_flops(&shape, B, T));
	batch_free(&b);
	model_free(&m);
	device_close(&d);
}

// test that phases are timed as the mode asks
static void phases_follow_the_mode(void **state)
{
	Device *d = device_open("cpu");
	Model *m = model_new(d, &shape, &policies[POLICY_FP32], 1);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(2, 8, shape.vocab, 1);
	for (Mode mode = MODE_FORWARD; mode <= MODE_TRAIN; mode++) {
		StepTime t = timed_step(m, &adamw, &b, mode);
		assert_true(t.fwd_ms > 0
			&& (t.bwd_ms > 0) == (mode >= MODE_FORWARD_BACKWARD)
			&& (t.opt_ms > 0) == (mode == MODE_TRAIN));
		assert_true(fabs(t.fwd_ms + t.bwd_ms + t.opt_ms - t.step_ms) < 1e-6);
	}
	assert_int_equal(adamw.t, 1);
	batch_free(&b);
	optimizer_free(&adamw);
	model_free(&m);
	device_close(&d);
}

TESTS(
	cmocka_unit_test(formulas_count_what_is_done),
	cmocka_unit_test(phases_follow_the_mode))
