/* ranges of a training step, on the CPU */
#include <omp.h>

#include "train/step.h"
#include "profile/profile.h"
#include "tests/ops/compare.h"

static Device *device;
static const Shape shape = { 101, 16, 32, 50, 3, 2, 16, 10000 };

// count ranges of a name within another
static int count_spans(const Profile *p, const char *name, const char *within)
{
	int n = 0;
	for (int s = 0; s < p->nranges; s++)
		n += strcmp(p->ranges[s].name, name) == 0
			&& profile_within(p, s, within) >= 0;
	return n;
}

// profile one step of a small model
static Profile *profile_of_step(bool fused)
{
	Model *m = model_new(device, &shape, &policies[POLICY_FP32], 3);
	if (fused)
		model_fuse(m);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(2, 16, shape.vocab, 1);
	Profile *p = profile_start(device, true);
	timed_step(m, &adamw, &b, MODE_TRAIN);
	profile_stop(p);
	timed_step(m, &adamw, &b, MODE_TRAIN);      /* no longer recorded */
	batch_free(&b);
	optimizer_free(&adamw);
	model_free(&m);
	return p;
}

// test that ranges are nested
static void ranges_are_nested(void **state)
{
	for (int fused = 0; fused < 2; fused++) {
		Profile *p = profile_of_step(fused);
		assert_false(p->sees_activities);
		assert_int_equal(p->nactivities, 0);
		assert_int_equal(count_spans(p, "forward", "step"), 1);
		assert_int_equal(count_spans(p, "optimizer", "optimizer"), 1);
		assert_int_equal(count_spans(p, "layer", "forward"), 3);
		assert_int_equal(count_spans(p, "layer", "backward"), 3);
		assert_int_equal(count_spans(p, "attention", "layer"), 6);
		assert_int_equal(count_spans(p, "feed-forward", "layer"), 6);
		assert_int_equal(count_spans(p, "softmax", "attention"),
			fused ? 0 : 6);
		assert_int_equal(count_spans(p, "layer", "optimizer"), 0);
		for (int s = 0; s < p->nranges; s++) {
			Range at = p->ranges[s];
			assert_true(at.parent < s && at.start_us <= at.end_us);
			assert_true(at.device_us > 0);
			double start, end;
			profile_interval(p, s, &start, &end);
			assert_true(start == at.start_us && end == at.end_us);
			assert_int_equal(profile_depth(p, s),
				at.parent < 0 ? 0 : profile_depth(p, at.parent) + 1);
			if (at.parent < 0)
				continue;
			Range around = p->ranges[at.parent];
			assert_true(around.start_us <= at.start_us
				&& at.end_us <= around.end_us);
			assert_true(at.device_us <= around.device_us);
		}
		profile_free(&p);
		assert_null(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(ranges_are_nested),
	};
	omp_set_num_threads(1);
	device = device_open("cpu");
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	device_close(&device);
	return failed;
}
