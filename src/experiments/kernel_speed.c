/* kernel_speed: operations bound by memory, against their bound in bytes */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/timing.h"
#include "bench/training.h"
#include "cases/kernel_case.h"
#include "model/precision.h"

// read the options of kernel speed
static int size = -1;
static long context, batch = 4, runs, parameters, footprint = 256;
static const Option options[] = {
	SIZE_OPTION(&size), CONTEXT_OPTION(&context), BATCH_OPTION(&batch),
	{ "parameters", OPT_INT, &parameters, "1..1073741824",
		"elements of the optimizer's arrays" },
	{ "footprint", OPT_INT, &footprint, "1..16384",
		"MiB that the sets of arguments take together, at least" },
	RUNS_OPTION(&runs),
	{ 0 }
};

static int count_runs(void)
{
	return runs ? (int)runs : harness_on_gpu() ? 21 : 11;
}

// count bytes
/* elements that must be touched */
static size_t touched(ArgumentExtent e, const KernelSizes *s)
{
	switch (e) {
	case TRIANGLE: case ATTENTION:
		return s->N * s->H * (s->T + 1) / 2;
	case QKV: return 2 * s->N * s->C;
	case ENTRIES: return s->distinct * s->C;
	default: return kernel_length(e, s);
	}
}

// count the bytes of a call or of a set
/* bytes that one call moves at its bound; all: bytes that a set of arguments
 * takes */
static double bytes_of(const Device *d, const TimedOperation *op,
	const KernelSizes *s,
	Type low, bool all)
{
	double bytes = 0;
	for (const KernelArgument *a = op->arguments; a->extent; a++) {
		int passes = all ? 1 : a->use == BOTH ? 2 : 1;
		size_t n = all ? kernel_length(a->extent, s) : touched(a->extent, s);
		if (!kernel_lacks(*a, low))
			bytes += (double)passes * n * d->backend->width(kernel_type(*a, low));
	}
	return bytes;
}

// compare a set with the CPU's
static double error_of(const real *got, const real *want, size_t n)
{
	double most = 0, worst = 0;
	for (size_t i = 0; i < n; i++) {
		double off = fabs((double)got[i] - want[i]);
		if (!(off <= worst))
			worst = off;
		most = fmax(most, fabs(want[i]));
		if (isnan(off))
			return NAN;
	}
	return worst / most;
}

// check the outputs of a set
/* the largest error of the outputs in set, which op was run on once */
static double check_set(Device *d, const Array *set, const TimedOperation *op,
	const KernelSizes *s, Type low)
{
	Device *cpu = device_open("cpu");
	Array wanted[NARGUMENTS] = { 0 };
	double worst = 0;
	kernel_set_new(cpu, wanted, NULL, op, s, low);
	op->queue(cpu, wanted, s);
	for (int i = 0; op->arguments[i].extent; i++) {
		if (!(op->arguments[i].use & WRITE) || set[i].at == NULL)
			continue;
		size_t n = kernel_length(op->arguments[i].extent, s);
		real *got = need(malloc(n * sizeof *got));
		array_read(d, got, set[i], n);
		double error = error_of(got, wanted[i].at, n);
		double allowed = 2 * type_spacing(set[i].type, 1) + 1e-4;
		if (!(error <= allowed))
			die("%s (%s): argument %d is wrong by %g, allowed are %g",
				op->name, op->path, i, error, allowed);
		worst = fmax(worst, error);
		free(got);
	}
	kernel_set_free(cpu, wanted);
	device_close(&cpu);
	return worst;
}

// time an operation over its sets
enum { MOST_SETS = 256, FEWEST_CALLS = 32 };

typedef struct CallRound {
	Device *device;
	const TimedOperation *op;
	const KernelSizes *sizes;
	Array (*sets)[NARGUMENTS];
	int nsets, ncalls;
} CallRound;

static void queue_round(void *arg)
{
	const CallRound *t = arg;
	for (int i = 0; i < t->ncalls; i++)
		t->op->queue(t->device, t->sets[i % t->nsets], t->sizes);
}

static int count_sets(double nbytes)
{
	double n = ceil(footprint * 1048576.0 / nbytes);
	return n < 1 ? 1 : n > MOST_SETS ? MOST_SETS : (int)n;
}

static void time_operation(Row *row, Device *d, const TimedOperation *op,
	const KernelSizes *s, Type low, double copy)
{
	static Array sets[MOST_SETS][NARGUMENTS];
	int nsets = count_sets(bytes_of(d, op, s, low, true)), rounds = 1;
	if (harness_on_gpu() && nsets < FEWEST_CALLS)
		rounds = (FEWEST_CALLS + nsets - 1) / nsets;
	memset(sets, 0, sizeof sets);
	kernel_set_new(d, sets[0], NULL, op, s, low);
	for (int i = 1; i < nsets; i++)
		kernel_set_new(d, sets[i], sets[0], op, s, low);
	CallRound round = { d, op, s, sets, nsets, 1 };
	queue_round(&round);
	bool gpu = harness_on_gpu();
	double error = gpu ? check_set(d, sets[0], op, s, low) : 0;
	round.ncalls = nsets * rounds;
	Timing t = timed(d, queue_round, &round, count_runs());
	for (int i = 0; i < nsets; i++)
		kernel_set_free(d, sets[i]);
	// fill the row of an operation
	double bytes = bytes_of(d, op, s, low, false), us = 1e3 / round.ncalls;
	double rate = bytes / (us * t.ms) * 1e-3;
	row_set(row, "op", "%s", op->name);
	row_set(row, "path", "%s", op->path);
	row_set(row, "bytes", "%.0f", bytes);
	row_set(row, "copy_us", "%.3f", bytes / copy * 1e-3);
	row_set(row, "us", "%.3f", us * t.ms);
	row_set(row, "sd_us", "%.3f", us * t.sd_ms);
	row_set(row, "min_us", "%.3f", us * t.min_ms);
	row_set(row, "GBps", "%.2f", rate);
	row_set(row, "fraction", "%.4f", rate / copy);
	row_set(row, "error", gpu ? "%.3g" : "-", error);
	row_set(row, "sets", "%d", nsets);
	row_set(row, "kernels", t.kernels ? "%d" : "-", t.kernels / round.ncalls);
	row_set(row, "copy_GBps", "%.2f", copy);
	row_emit(row);
}

// plan and run all operations of a size
typedef struct KernelSpeedConfig { int size, precision; } KernelSpeedConfig;
static const Key keys[] = { KEY(KernelSpeedConfig, size, SIZES),
	KEY(KernelSpeedConfig, precision, PRECISIONS), { 0 } };

static void plan_size(Plan *plan, int which)
{
	plan_add(plan, &(KernelSpeedConfig){ which, POLICY_FP32 });
	if (harness_on_gpu())
		plan_add(plan, &(KernelSpeedConfig){ which, POLICY_BF16 });
}

static void plan(Plan *plan)
{
	static const int sizes[] = { SIZE_SMALL, SIZE_LARGE, SIZE_2_7B };
	if (size >= 0)
		plan_size(plan, size);
	for (int i = 0; i < (size >= 0 ? 0 : harness_on_gpu() ? 3 : 1); i++)
		plan_size(plan, sizes[i]);
}

// run all operations of a size
static void run(Row *row, const void *config)
{
	const KernelSpeedConfig *c = config;
	Device *d = harness_device();
	Type low = c->precision == POLICY_BF16 ? BF16 : FP32;
	bool gpu = harness_on_gpu();
	KernelSizes s = kernel_sizes(&model_sizes[c->size].shape, batch,
		context ? context : gpu ? 512 : 128,
		parameters ? parameters : 1 << (gpu ? 26 : 24));
	double copy = copy_GBps(d, copy_length(d), count_runs());
	for (const TimedOperation *op = kernel_operations; op->name; op++)
		if (op->when == ANY || (op->when == FP32_ONLY) == (low == FP32))
			time_operation(row, d, op, &s, low, copy);
}

// describe the experiment of kernel speed
const Experiment experiment = {
	.about = "operations bound by memory, against their bound in bytes",
	.options = options, .cpu_scale = "small (one model, context 128, a quarter "
		"of the parameters, fp32)",
	.sweeps = SWEEPS(
		{ "operations", keys, plan, run }),
};
