/* rmsnorm_benchmarking: versions of RMSNorm, its peers, both passes */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "bench/harness.h"
#include "bench/peer.h"
#include "bench/timing.h"
#include "cases/norm_rows.h"
#include "ops/array.h"
#include "ops/norm_plan.h"

// read the options of RMSNorm's benchmark
/* name, kind, and whether the backward pass computes rho again */
#define FORMS_OF(FIRST, NEXT)                       \
	FIRST(AGAIN, "again", &in_one, true)        \
	NEXT(NATIVE, "native", &centered, false)    \
	NEXT(EAGER, "eager", &by_steps, false)
#define VARIANTS CHOICES(FORMS_OF) "|" CHOICES(NORM_VERSIONS_OF)
enum { CHOICE_IDS(FORMS_OF) NFORMS, NVARIANTS = NFORMS + NORM_VERSIONS,
	CHOSEN = NFORMS + NORM_BY_WIDTH };

static long rows, width, repeats;
static int precision = -1, variant = -1;
static const Option options[] = {
	ROWS_OPTION(&rows),
	WIDTH_OPTION(&width, "1..1048576"),
	REPEATS_OPTION(&repeats),
	PRECISION_OPTION_OF(&precision, COMMON_TYPES, "only this format"),
	VARIANT_OPTION(&variant, VARIANTS, "only this variant of ours"),
	{ 0 }
};

// list the variants of a norm
typedef struct TimedNorm {
	NormRowsCase r; /* first: a pass over rows takes a TimedNorm */
	const struct NormKind *kind;
	NormVersion version;
	bool again;
} TimedNorm;

typedef struct NormKind {
	const char *name;
	bool centers;                    /* subtracts the mean and adds a shift */
	Work *forward, *backward;
} NormKind;

// run a version of the fused norm
static void fused_forward(void *norm)
{
	const TimedNorm *n = norm;
	const NormRowsCase *r = &n->r;
	r->ops->fused_rmsnorm_forward(r->device, (NormForward){ .y = r->y,
		.rho = r->rho, .x = r->x, .g = r->g, .eps = ROWS_EPS,
		.version = n->version }, r->rows, r->C);
}

static void fused_backward(void *norm)
{
	const TimedNorm *n = norm;
	const NormRowsCase *r = &n->r;
	r->ops->fused_rmsnorm_backward(r->device, (NormBackward){ .dsum = r->dx,
		.fresh = true, .dg = r->dg, .dy = r->dy, .sum = r->x, .g = r->g,
		.rho = n->again ? (Array){ NULL, FP32 } : r->rho, .eps = ROWS_EPS,
		.version = n->version }, r->rows, r->C);
}

// describe the variants of a norm
static const NormKind by_steps = { "rmsnorm", false, norm_rows_rmsnorm,
		norm_rows_rmsnorm_back },
	in_one = { "rmsnorm", false, fused_forward, fused_backward },
	centered = { "layernorm", true, norm_rows_layernorm,
		norm_rows_layernorm_back };
static const struct NormVariant {
	const char *name;
	const NormKind *kind;
	bool again;
	NormVersion version;
} variants[NVARIANTS] = {
#define FORM(id, name, kind, again) { name, kind, again, NORM_BY_WIDTH },
#define VERSION(id, name)           { name, &in_one, false, id },
	FORMS_OF(FORM, FORM) NORM_VERSIONS_OF(VERSION, VERSION)
};
enum { MOST_OF_LAYERNORM = 8192 };      /* elements of a row, on a GPU */

// compare a variant's gradient of the gain
/* ends the program unless dg is `want`, within the errors of sums over rows */
static void expect_gain(const NormRowsCase *n, const real *want, const char *name)
{
	real *got = norm_row(n->device, n->dg, 0, n->C);
	double bound = 1e-4 * sqrt(n->rows);
	for (size_t j = 0; j < n->C; j++)
		if (!(fabs(got[j] - want[j]) <= bound * (1 + fabs(want[j]))))
			die("%s: element %zu of the gain's gradient is %g, not %g", name, j,
				(double)got[j], (double)want[j]);
	free(got);
}

// compute the eager gradient of the gain
static void clear_outputs(const NormRowsCase *n)
{
	n->ops->fill(n->device, n->y, NAN, n->rows * n->C);
	n->ops->fill(n->device, n->dx, 0, n->rows * n->C);
	n->ops->fill(n->device, n->dg, 0, n->C);
}

static real *eager_gain(NormRowsCase *n)
{
	clear_outputs(n);
	norm_rows_rmsnorm(n);
	norm_rows_rmsnorm_back(n);
	return norm_row(n->device, n->dg, 0, n->C);
}

// time a variant
typedef struct RmsnormConfig {
	long rows, width;
	int precision, by;
} RmsnormConfig;
static const Key keys[] = { KEY(RmsnormConfig, rows), KEY(RmsnormConfig, width),
	KEY(RmsnormConfig, precision, COMMON_TYPES),
	KEY(RmsnormConfig, by, SIDES), { 0 } };

// time one pass of a variant
static void pass_forward(void *n) { ((TimedNorm *)n)->kind->forward(n); }
static void pass_backward(void *n) { ((TimedNorm *)n)->kind->backward(n); }
static void pass_both(void *n)
{
	pass_forward(n);
	pass_backward(n);
}

/* how often a pass over n elements runs: on a GPU 1000 times for 50,000 rows of
 * 1024, and so often that wider rows take as much time */
static int runs_of_norm(double n)
{
	enum { MOST = 1000 };
	double runs = 50000.0 * 1024 * MOST / n;
	return repeats ? (int)repeats : !harness_on_gpu() ? 10
		: runs < MOST ? (int)runs : MOST;
}

/* arrays: how many the pass must move */
static void time_pass(Row *row, const char *pass, Work *work, TimedNorm *n,
	int arrays, double copy)
{
	char name[32];
	Device *d = n->r.device;
	double elements = (double)n->r.rows * n->r.C;
	Timing t = timed(d, work, n, runs_of_norm(elements));
	double GBps = arrays * elements * d->backend->width(n->r.x.type) / t.ms
		* 1e-6;
	snprintf(name, sizeof name, "%s_ms", pass);
	row_set(row, name, "%.6g", t.ms);
	snprintf(name, sizeof name, "%s_sd_ms", pass);
	row_set(row, name, "%.6g", t.sd_ms);
	snprintf(name, sizeof name, "%s_fraction", pass);
	row_set(row, name, "%.6g", GBps / copy);
	snprintf(name, sizeof name, "%s_kernels", pass);
	if (arrays < 5)
		row_set(row, name, t.kernels ? "%d" : "-", t.kernels);
}

// time the passes that a variant has
static bool has_plan(const TimedNorm *n, bool backward)
{
	const size_t C = n->r.C;
	int pack = n->r.x.type == BF16 ? 8 : 4;
	return norm_plan(n->version, backward, C, C % pack ? 1 : pack).threads;
}

// check a variant, then time it
static void time_variant(Row *row, TimedNorm *n, const struct NormVariant *v,
	const real *gain, double copy)
{
	n->kind = v->kind;
	n->version = v->version;
	n->again = v->again;
	bool forward = has_plan(n, false), backward = has_plan(n, true);
	int common = row->n;
	row_set(row, "norm", "%s", n->kind->name);
	row_set(row, "variant", "%s", v->name);
	clear_outputs(&n->r);
	n->version = forward ? v->version : NORM_BY_WIDTH;
	n->kind->forward(n);
	n->version = backward ? v->version : NORM_BY_WIDTH;
	n->kind->backward(n);
	n->version = v->version;
	norm_rows_check(&n->r, n->kind->centers, n->kind->name);
	if (!n->kind->centers)
		expect_gain(&n->r, gain, v->name);
	if (forward)
		time_pass(row, "fwd", pass_forward, n, 2, copy);
	if (backward)
		time_pass(row, "bwd", pass_backward, n, 3, copy);
	if (forward && backward)
		time_pass(row, "both", pass_both, n, 5, copy);
	row_emit(row);
	row_forget(row, common);
}

// time PyTorch's forms of a norm
static void time_pytorch(Row *row, const RmsnormConfig *c, double copy)
{
	enum { LIMIT_S = 300 };
	peer_measure(row, LIMIT_S, "pytorch_norms.py",
		"--rows %ld --width %ld --precision %s --repeats %d --seed %ld "
		"--copy %.2f", c->rows, c->width, type_names[c->precision],
		runs_of_norm((double)c->rows * c->width), harness_seed, copy);
}

// run the variants that take a width
static void run_variants(Row *row, const RmsnormConfig *c, int first, int end)
{
	Device *d = harness_device();
	double copy = copy_GBps(d, copy_length(d), harness_on_gpu() ? 21 : 5);
	row_set(row, "copy_GBps", "%.2f", copy);
	if (c->by == PYTORCH) {
		time_pytorch(row, c, copy);
		return;
	}
	TimedNorm n = { norm_rows_new(d, c->rows, c->width, c->precision) };
	real *gain = eager_gain(&n.r);
	row_set(row, "impl", "ours");
	row_set(row, "timing", harness_on_gpu() ? "replay" : "calls");
	for (int i = first; i < end; i++) {
		const struct NormVariant *v = &variants[i];
		n.version = v->version;
		bool takes = has_plan(&n, false) || has_plan(&n, true);
		if (v->kind == &centered && harness_on_gpu())
			takes = n.r.C <= MOST_OF_LAYERNORM;
		if (takes && (variant < 0 || variant == i))
			time_variant(row, &n, v, gain, copy);
	}
	free(gain);
	norm_rows_free(&n.r);
}

static void run_norms(Row *row, const void *config)
{
	run_variants(row, config, 0, harness_on_gpu() ? NVARIANTS : CHOSEN + 1);
}

// plan the widths of the problem
static bool is_wanted_type(Type type)
{
	return precision < 0 || precision == (int)type;
}

static void plan_norms(Plan *plan)
{
	long count = rows ? rows : harness_on_gpu() ? 50000 : 1000;
	for (Type type = FP32; type <= BF16; type++)
		for (long C = width ? width : 1024; is_wanted_type(type); C *= 2) {
			plan_add(plan, &(RmsnormConfig){ count, C, type, OURS });
			if (harness_on_gpu() && variant < 0)
				plan_add(plan, &(RmsnormConfig){ count, C, type, PYTORCH });
			if (width || C == 8192)
				break;
		}
}

// time norms of many widths
static void plan_widths(Plan *plan)
{
	static const long widths[] = { 31, 50, 64, 256, 512, 768, 1280, 1600, 2560,
		4608, 10000, 16384, 32768, 151936 };
	long elements = harness_on_gpu() ? (long)1 << 27 : 1 << 19;
	for (Type type = FP32; type <= BF16; type++)
		for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
			if (is_wanted_type(type) && (width == 0 || width == widths[i]))
				plan_add(plan,
					&(RmsnormConfig){ rows ? rows : elements / widths[i],
					widths[i], type, OURS });
}

static void run_widths(Row *row, const void *config)
{
	run_variants(row, config, EAGER, CHOSEN + 1);
}

// describe RMSNorm's benchmark
const Experiment experiment = {
	.about = "RMSNorm's kernels, forward and backward, and their peers",
	.options = options, .cpu_scale = "small (1000 rows, 10 passes; one version)",
	.sweeps = SWEEPS(
		{ "norms", keys, plan_norms, run_norms },
		{ "widths", keys, plan_widths, run_widths }),
};
