/* the memory estimate of a training step against the device's */
#include <omp.h>

#include "train/step.h"
#include "estimate/memory_estimate.h"
#include "tests/ops/compare.h"

static void expect_equal(double got, double wanted, const char *what,
	const char *path)
{
	if (got != wanted)
		fail_msg("%s, %s: %.0f bytes, derived %.0f", path, what, got, wanted);
}

// compare a path's memory with the estimate
static void check_path(Device *d, int policy, bool fused, int K, bool nested,
	size_t chunk)
{
	const Shape shape = { chunk ? 700 : 50, 128, 64, 160, chunk ? 2 : 8, 4, 16,
		10000 };
	enum { B = 8, T = 128 };
	char path[64];
	snprintf(path, sizeof path, "%s, %s, K = %d%s, chunks of %zu",
		policies[policy].name, fusion_names[fused], K, nested ? ", nested" : "",
		chunk);
	Model *m = model_new(d, &shape, &policies[policy], 1);
	if (fused)
		model_fuse(m);
	model_recompute(m, K, nested);
	ModelPlan plan = { .head_chunk = chunk };
	if (fused && K == 0 && chunk > 1)
		plan.drop_gate_up = 1 + chunk % 2, plan.drop_qkv = 2;
	if (m->fp8 && fused && K == 0 && chunk)
		plan.drop_codes = 1, plan.drop_weight_codes = chunk > 1;
	model_follow(m, &plan);
	Batch b = batch_random(B, T, shape.vocab, 1);
	device_reset_peak(d);
	timed_step(m, NULL, &b, MODE_FORWARD);
	expect_equal(d->total_peak, memory_estimate_forward(m, B, T), "forward",
		path);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	timed_step(m, &adamw, &b, MODE_TRAIN);
	device_reset_peak(d);
	timed_step(m, &adamw, &b, MODE_TRAIN);
	MemoryEstimate a = memory_estimate(m, B, T, true);
	for (int c = 0; c < NCATEGORIES; c++)
		expect_equal(d->peak[c], a.category[c], category_names[c], path);
	expect_equal(d->total_peak, a.total, "total", path);
	batch_free(&b);
	optimizer_free(&adamw);
	model_free(&m);
}

// test the estimate on all paths
static void estimate_is_met(void **state)
{
	Device *d = device_open("cpu");
	for (int policy = 0; policy < 2; policy++)
		for (int fused = 0; fused < 2; fused++) {
			check_path(d, policy, fused, 0, false, 0);
			for (int K = 1; K <= 4; K++)
				check_path(d, policy, fused, K, false, 0);
			check_path(d, policy, fused, 1, true, 0);
			check_path(d, policy, fused, 3, true, 0);
			check_path(d, policy, fused, 0, false, 100);
			check_path(d, policy, fused, 1, false, 900);
			check_path(d, policy, fused, 0, false, 5001);
			check_path(d, POLICY_BF16_STREAM + policy, fused, 2 * fused, false,
				0);
		}
	device_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(estimate_is_met),
	};
	omp_set_num_threads(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
