/* steps of training, recorded and compiled, against one operation at a time */
#define _GNU_SOURCE
#include "jit/jit.h"
#include "ops/elementary.h"
#include "tests/ops/compare.h"
#include "train/step.h"

static const Shape tiny = { 13, 8, 18, 22, 2, 3, 6, 10000 };
static Ops formulas;

// do each operation when it is asked for
typedef struct Prompt {
	Deferral deferral;
	Device *device;
} Prompt;

static void flush(Deferral *self, const char *why)
{
}

static bool frees(Deferral *self, void *p, size_t nbytes)
{
	return false;
}

static void take(Deferral *self, const Elementary *e)
{
	cpu_elementary(NULL, e);
}

static void *scratch(Deferral *self, size_t nbytes, const char *what)
{
	return device_alloc(((Prompt *)self)->device, nbytes, MEM_TEMPORARY, what);
}

// train a model
enum { STEPS = 3 };

/* trains for STEPS steps and returns the losses; once: weights are cast once
 * a step. weights: set to the model's weights in the end */
static double *train(Device *d, const Policy *policy, bool once, real *weights)
{
	double *loss = guarded(STEPS * sizeof *loss);
	Model *m = model_new(d, &tiny, policy, 7);
	if (once)
		model_keep_compute(m);
	Optimizer adamw = adamw_new(m, 1e-2, 0.9, 0.95, 1e-8, 0.1);
	for (int i = 0; i < STEPS; i++) {
		Batch b = batch_random(3, 8, tiny.vocab, 11 + (uint64_t)i);
		loss[i] = timed_step(m, &adamw, &b, MODE_TRAIN).loss;
		batch_free(&b);
	}
	array_read(d, weights, m->weights, m->extent);
	optimizer_free(&adamw);
	model_free(&m);
	return loss;
}

// test that recorded training has equal bits
static void training_agrees(void **state)
{
	size_t n = shape_extent(&tiny);
	Device *d = device_open("cpu");
	formulas = *ops_for(d);
	ops_by_formulas(&formulas);
	Prompt prompt = { { flush, frees, take, scratch, &formulas }, d };
	for (int k = 0; k < NAUTOCAST * 3; k++) {
		const Policy *policy = &policies[k / 3];
		Array once = poisoned(n), again = poisoned(n);
		d->deferral = &prompt.deferral;
		double *want = train(d, policy, false, once.at);
		d->deferral = NULL;
		assert_true(jit_start(d, (JitSettings){ .alone = k % 3 == 2 }));
		double *got = train(d, policy, k % 3 == 1, again.at);
		jit_stop(d);
		print_message("%s: losses %g ... %g\n", policy->name, want[0],
			want[STEPS - 1]);
		for (int i = 0; i < STEPS; i++)
			assert_true(got[i] == want[i]);
		expect_same("weights", again, once, n);
	}
	device_close(&d);
}

// test that each update of AdamW is one kernel
/* each update is one group, though the first group has room for some
 * operations of the second update */
static void the_optimizer_is_one_kernel(void **state)
{
	Device *d = device_open("cpu");
	assert_true(jit_start(d, (JitSettings){ 0 }));
	Array a[10];
	AdamWStep *step = guarded(sizeof *step);
	for (int k = 0; k < 10; k++)
		a[k] = drawn(1000, k, 1, 0.1);
	memset(step, 0, sizeof *step);
	for (int k = 0; k < 10; k += 5)
		ops_for(d)->adamw(d, a[k], a[k + 4], a[k + 1], a[k + 2], a[k + 3], 1000,
			step, NULL);
	jit_stop(d);
	JitCounts c = jit_counts(d);
	assert_int_equal(c.groups, 2);
	assert_int_equal(c.operations, 30);
	assert_true(fabs(c.bytes - 2 * 1000 * 8 * sizeof(real)) < 100);
	device_close(&d);
}

TESTS(checked(training_agrees), checked(the_optimizer_is_one_kernel))
