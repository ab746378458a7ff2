/* kernels of a training step, on the GPU */
#include "tests/ops/cuda/both.h"

#include "experiments/step.h"
#include "profile/profile.h"

static const Shape shape = { 1000, 64, 128, 344, 3, 2, 10000 };

static int kernels_within(const Profile *p, const char *name)
{
	int n = 0;
	for (size_t i = 0; i < p->nworks; i++)
		n += p->works[i].kind == WORK_KERNEL
			&& profile_within(p, p->works[i].span, name) >= 0;
	return n;
}

static void expect_works(const Profile *p, double step_ms)
{
	double busy = 0;
	for (size_t i = 0; i < p->nworks; i++) {
		const Work *w = &p->works[i];
		assert_true(w->start_us <= w->end_us);
		if (w->span < 0 || w->kind != WORK_KERNEL)
			continue;
		assert_true(w->start_us >= p->spans[w->span].start_us);
		assert_true(w->grid[0] > 0 && w->block[0] > 0 && w->registers > 0);
		busy += w->end_us - w->start_us;
	}
	for (size_t i = 1; i < p->nworks; i++)
		assert_true(p->works[i].stream != p->works[i - 1].stream
			|| p->works[i].start_us >= p->works[i - 1].start_us);
	assert_true(busy > 0 && busy <= step_ms * 1e3);
}

static void kernels_lie_in_their_phases(void **state)
{
	(void)state;
	if (gpu == NULL)
		skip();
	for (int fused = 0; fused < 2; fused++) {
		Model *m = model_new(gpu, &shape, &policies[1], 3);
		if (fused)
			model_fuse(m);
		AdamW adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
		Batch b = batch_random(2, 64, shape.vocab, 1);
		timed_step(m, &adamw, &b, MODE_TRAIN);
		Profile *p = profile_start(gpu, true);
		if (!p->sees_work)
			skip();
		StepTime t = timed_step(m, &adamw, &b, MODE_TRAIN);
		profile_stop(p);
		int kernels = step_kernels(m, &adamw, MODE_TRAIN);
		assert_int_equal(p->lost, 0);
		assert_int_equal(kernels_within(p, "forward")
			+ kernels_within(p, "backward")
			+ kernels_within(p, "optimizer"), kernels);
		assert_true(kernels_within(p, "softmax") == (fused ? 0 : 3 * (7 + 7)));
		expect_works(p, t.step_ms);
		profile_free(&p);
		batch_free(&b);
		adamw_free(&adamw, m);
		model_free(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_lie_in_their_phases),
	};
	return cmocka_run_group_tests(tests, open_both, close_both);
}
