#include "bench/harness.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"
#include "ops/ops.h"

// make a batch and compute its loss
enum { ROWS = 2 };
static const double EPS = 1e-5;

typedef struct NormBatch {
	size_t H;
	Array x, g, dy;          /* (ROWS, H), (H), (ROWS, H) */
	Array y, rho;            /* (ROWS, H), (ROWS) */
	Array dx, dg;
} NormBatch;

static Array new_array(size_t n, int stream, double mean, double deviation)
{
	real *at = need(malloc(n * sizeof *at));
	for (size_t i = 0; i < n; i++)
		at[i] = (real)(mean + deviation *
		               random_normal(harness_seed, stream, i));
	return (Array){ at, TYPE_REAL };
}

// sum a loss that is linear in the output
static long double loss(const Ops *ops, const NormBatch *b)
{
	const real *y = b->y.at, *dy = b->dy.at;
	long double sum = 0;
	ops->rmsnorm_forward(NULL, b->y, b->rho, b->x, b->g, ROWS, b->H, EPS);
	for (size_t i = 0; i < ROWS * b->H; i++)
		sum += (long double)dy[i] * y[i];
	return sum;
}

// compare a gradient with central differences
static double difference_error(const Ops *ops, const NormBatch *b, Array theta,
                               const real *gradient, size_t n, double h)
{
	real *t = theta.at;
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		real kept = t[i];
		t[i] = (real)(kept + h);
		long double up = loss(ops, b), above = t[i];
		t[i] = (real)(kept - h);
		long double down = loss(ops, b), below = t[i];
		t[i] = kept;
		long double slope = (up - down) / (above - below);
		sum += pow((double)(slope - gradient[i]), 2);
	}
	return sqrt(sum);
}

// find the norm of the gradient before the projection
static double norm_of_v(const NormBatch *b)
{
	const real *g = b->g.at, *dy = b->dy.at, *rho = b->rho.at;
	double sum = 0;
	for (size_t i = 0; i < ROWS * b->H; i++) {
		double v = dy[i] * g[i % b->H] * rho[i / b->H];
		sum += v * v;
	}
	return sqrt(sum);
}

// plan widths and steps
static const long widths[] = { 1, 2, 7, 64, 768, 1600 };
enum { NWIDTHS = sizeof widths / sizeof *widths, NSTEPS = 25 };

static double step_size(int k)             /* 10 down to 1e-11, two a decade */
{
	return pow(10, 1 - k / 2.0);
}

typedef struct JvpConfig {
	long width;
	double step;
} JvpConfig;
static const Key keys[] = { KEY(JvpConfig, width), KEY(JvpConfig, step, "%.3g"),
	{ 0 } }, width_keys[] = { KEY(JvpConfig, width), { 0 } };

// plan a row for each width and step
/* the step as the table prints it, of three digits: the row computes with that */
static double listed_step(int k)
{
	char text[16];
	snprintf(text, sizeof text, "%.3g", step_size(k));
	return strtod(text, NULL);
}

static void plan_steps(Plan *plan)
{
	for (int w = 0; w < NWIDTHS; w++)
		for (int k = 0; k < NSTEPS; k++)
			plan_add(plan, &(JvpConfig){ widths[w], listed_step(k) });
}

// measure the errors of both gradients at one step
typedef struct JvpErrors { double dx, dg; } JvpErrors;

static NormBatch new_batch(const Ops *ops, size_t H)
{
	size_t n = ROWS * H;
	NormBatch b = { H, new_array(n, 1, 0, 1), new_array(H, 2, 1, 0.5),
		new_array(n, 3, 0, 1), new_array(n, 4, 0, 0),
		new_array(ROWS, 5, 0, 0), new_array(n, 6, 0, 0),
		new_array(H, 7, 0, 0) };
	loss(ops, &b);
	ops->rmsnorm_backward(NULL, b.dx, b.dg, b.dy, b.x, b.g, b.rho, ROWS, H);
	return b;
}

// measure both gradients at one step
static JvpErrors measure(const Ops *ops, const NormBatch *b, double h)
{
	const real *dg = b->dg.at;
	double size = 0, scale = norm_of_v(b);
	for (size_t j = 0; j < b->H; j++)
		size += dg[j] * dg[j];
	return (JvpErrors){
		difference_error(ops, b, b->x, b->dx.at, ROWS * b->H, h) / scale,
		difference_error(ops, b, b->g, b->dg.at, b->H, h) / sqrt(size),
	};
}

// run one width and step
static const double U = 0x1p-53;

static void run_step(Row *row, const void *config)
{
	const JvpConfig *c = config;
	omp_set_num_threads(1);         /* two rows are not worth waking others */
	const Ops *ops = ops_for(harness_device());
	double H = c->width, h = c->step;
	NormBatch b = new_batch(ops, (size_t)H);
	JvpErrors e = measure(ops, &b, h);
	row_set(row, "dx_error", "%.3e", e.dx);
	row_set(row, "dg_error", "%.3e", e.dg);
	row_set(row, "truncation", "%.3e", h * h / (2 * H));
	row_set(row, "rounding", "%.3e", U * sqrt(H) / (2 * h));
}

// find the best step of one width
static void plan_best(Plan *plan)
{
	for (int w = 0; w < NWIDTHS; w++)
		plan_add(plan, &(JvpConfig){ widths[w], 0 });
}

// try all steps and keep the best
static void run_best(Row *row, const void *config)
{
	const JvpConfig *c = config;
	omp_set_num_threads(1);
	const Ops *ops = ops_for(harness_device());
	double H = c->width, best_step = 0;
	JvpErrors best = { INFINITY, INFINITY };
	NormBatch b = new_batch(ops, (size_t)H);
	for (int k = 0; k < NSTEPS; k++) {
		JvpErrors e = measure(ops, &b, step_size(k));
		if (e.dx < best.dx) {
			best.dx = e.dx;
			best_step = step_size(k);
		}
		best.dg = fmin(best.dg, e.dg);
	}
	if (!(best.dx < 1e-9 && best.dg < 1e-9))
		die("width %g: errors %g and %g", H, best.dx, best.dg);
	row_set(row, "best_step", "%.2e", best_step);
	row_set(row, "predicted_step", "%.2e", 0x1p-18 * sqrt(H));
	row_set(row, "dx_error", "%.2e", best.dx);
	row_set(row, "predicted_error", "%.2e", 1.5 * 0x1p-36);
	row_set(row, "dg_error", "%.2e", best.dg);
}

// describe the sweeps of differences to the harness
const Experiment experiment = {
	.about = "RMSNorm's gradients against central differences, in double",
	.sweeps = SWEEPS(
		{ "steps", keys, plan_steps, run_step },
		{ "best", width_keys, plan_best, run_best }),
};
