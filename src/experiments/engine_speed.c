/* engine_speed: forward and backward of `small` against the rate of sgemm and
 * the derived memory */
#include <cblas.h>
#include <stdlib.h>

#include "base/error.h"
#include "bench/training.h"
#include "estimate/memory_estimate.h"

static long context = 128, batch = 4, steps = 3;
static const Option options[] = {
	CONTEXT_OPTION(&context), BATCH_OPTION(&batch),
	STEPS_OPTION_IN(&steps, "1..1000", "measured steps, after one"),
	{ 0 }
};

// measure the rate of large matmuls
enum { LARGE = 2048 };

/* GFLOP/s of (m, k) times the transpose of (n, k), the fastest of a few */
static double sgemm_gflops(Device *d, int m, int n, int k)
{
	enum { REPEATS = 4 };
	size_t na = (size_t)(m > n ? m : n) * k, nc = (size_t)m * n;
	float *a = need(malloc(na * sizeof *a)), *c = need(malloc(nc * sizeof *c));
	for (size_t i = 0; i < na; i++)
		a[i] = (float)(i % 97) / 97 - 0.5f;
	double best = 0;
	for (int i = 0; i < REPEATS; i++) {
		double start = device_now_ms(d);
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, a, k,
			a, k, 0, c, n);
		double rate = 2.0 * nc * k / (device_now_ms(d) - start) * 1e-6;
		best = rate > best ? rate : best;
	}
	free(a);
	free(c);
	return best;
}

// time steps of small at full size
static void run(Row *row, const void *config)
{
	(void)config;
	Device *d = harness_device();
	Shape shape = model_sizes[SIZE_SMALL].shape;
	size_t B = batch, T = shape.context = context;
	double before = sgemm_gflops(d, LARGE, LARGE, LARGE);
	Model *m = model_new(d, &shape, &policies[POLICY_FP32], harness_seed);
	Batch b = batch_random(B, T, shape.vocab, harness_seed);
	StepStats s = timed_steps(m, NULL, &b, MODE_FORWARD_BACKWARD, false, 1,
		steps);
	double after = sgemm_gflops(d, LARGE, LARGE, LARGE);
	double rate = before > after ? before : after;
	double fwd = s.fwd.median, bwd = s.bwd.median;
	double gflop = 3e-9 * forward_flops(&shape, B, T);
	// fill the row of speed
	row_set(row, "sgemm_GFlops", "%.2f", rate);
	row_set(row, "layer_GFlops", "%.2f", sgemm_gflops(d, (int)(B * T),
		(int)shape.d_ff, (int)shape.d_model));
	row_set(row, "step_GFLOP", "%.3f", gflop);
	row_set(row, "fwd_ms", "%.2f", fwd);
	row_set(row, "bwd_ms", "%.2f", bwd);
	row_set(row, "rate_GFlops", "%.2f", gflop / (fwd + bwd) * 1e3);
	row_set(row, "fraction", "%.4f", gflop / (fwd + bwd) * 1e3 / rate);
	row_set(row, "peak_MiB", "%.2f", d->total_peak / 1048576.0);
	row_set(row, "derived_MiB", "%.2f",
		memory_estimate(m, B, T, false).total / 1048576);
}

// describe the experiment of speed
typedef struct EngineSpeedConfig {
	int size;
	long context, batch;
} EngineSpeedConfig;
static const Key keys[] = { KEY(EngineSpeedConfig, size, SIZES),
	KEY(EngineSpeedConfig, context),
	KEY(EngineSpeedConfig, batch), { 0 } };

static void plan(Plan *plan)
{
	plan_add(plan, &(EngineSpeedConfig){ SIZE_SMALL, context, batch });
}

const Experiment experiment = {
	.about = "forward and backward of small against the rate of sgemm",
	.options = options, .cpu_only = true, .sweeps = SWEEPS(
		{ "speed", keys, plan, run }),
};
