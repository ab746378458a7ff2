/* kernels of a training step, on the GPU */
#include "tests/ops/cuda/both.h"

#include "train/step.h"
#include "profile/profile.h"

static const Shape shape = { 1000, 64, 128, 344, 3, 2, 64, 10000 };

// count the kernels within a range
static int kernels_within(const Profile *p, const char *name)
{
	int n = 0;
	for (size_t i = 0; i < p->nactivities; i++)
		n += p->activities[i].kind == ACTIVITY_KERNEL
			&& profile_within(p, p->activities[i].range, name) >= 0;
	return n;
}

// check times and streams of activities
static void expect_activities(const Profile *p, double step_ms)
{
	double busy = 0;
	for (size_t i = 0; i < p->nactivities; i++) {
		const Activity *w = &p->activities[i];
		assert_true(w->start_us <= w->end_us);
		if (w->range < 0 || w->kind != ACTIVITY_KERNEL)
			continue;
		assert_true(w->start_us >= p->ranges[w->range].start_us);
		assert_true(w->grid[0] > 0 && w->block[0] > 0 && w->registers > 0);
		busy += w->end_us - w->start_us;
	}
	for (size_t i = 1; i < p->nactivities; i++)
		assert_true(p->activities[i].stream != p->activities[i - 1].stream
			|| p->activities[i].start_us >= p->activities[i - 1].start_us);
	assert_true(busy > 0 && busy <= step_ms * 1e3);
}

// check that intervals are nested
/* each interval that has activities lies in that of the range around it */
static void expect_intervals(const Profile *p)
{
	double start, end, outer_start, outer_end;
	for (size_t i = 0; i < p->nactivities; i++)
		for (int s = p->activities[i].range; s >= 0; s = p->ranges[s].parent) {
			profile_interval(p, s, &start, &end);
			assert_true(start <= p->activities[i].start_us
				&& p->activities[i].end_us <= end);
			if (p->ranges[s].parent < 0)
				continue;
			profile_interval(p, p->ranges[s].parent, &outer_start, &outer_end);
			assert_true(outer_start <= start && end <= outer_end);
		}
}

// test that kernels lie in their phases
static void kernels_lie_in_their_phases(void **state)
{
	for (int fused = 0; fused < 2; fused++) {
		Model *m = model_new(gpu, &shape, &policies[POLICY_BF16], 3);
		if (fused)
			model_fuse(m);
		Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
		Batch b = batch_random(2, 64, shape.vocab, 1);
		timed_step(m, &adamw, &b, MODE_TRAIN);
		Profile *p = profile_start(gpu, true);
		if (!p->sees_activities)
			skip();
		StepTime t = timed_step(m, &adamw, &b, MODE_TRAIN);
		profile_stop(p);
		int kernels = step_kernels(m, &adamw, MODE_TRAIN);
		assert_int_equal(p->lost, 0);
		assert_int_equal(kernels_within(p, "forward")
			+ kernels_within(p, "backward")
			+ kernels_within(p, "optimizer"), kernels);
		assert_true(kernels_within(p, "softmax") == (fused ? 0 : 3 * (7 + 7)));
		expect_activities(p, t.step_ms);
		expect_intervals(p);
		profile_free(&p);
		batch_free(&b);
		optimizer_free(&adamw);
		model_free(&m);
	}
}

TESTS_BETWEEN(open_both, close_both,
	on_gpu(kernels_lie_in_their_phases))
