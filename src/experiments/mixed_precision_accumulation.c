#include "bench/harness.h"

#include <math.h>

#include "base/accumulate.h"
#include "base/error.h"

// list the cases: addend, number of additions, formats
static const struct { double value; long steps; } tasks[] = {
	{ 0.01, 1000 }, { 0.001, 10000 },
};
static const struct { Type accumulator, stored; const char *column; }
	formats[] = {
	{ FP32, FP32, "fp32" }, { FP16, FP16, "fp16" }, { FP32, FP16, "fp32_fp16" },
	{ BF16, BF16, "bf16" }, { FP32, BF16, "fp32_bf16" },
};
enum { NTASKS = sizeof tasks / sizeof *tasks,
	NFORMATS = sizeof formats / sizeof *formats };

typedef struct SumConfig {
	double value;
	long steps, exponent;            /* of 2, of a binade */
	Type accumulator, stored;
	bool cast;
} SumConfig;

static SumConfig sum_of(int task, int format)
{
	return (SumConfig){ .value = tasks[task].value, .steps = tasks[task].steps,
		.accumulator = formats[format].accumulator,
		.stored = formats[format].stored };
}

// plan the rows of sums
static const Key sum_keys[] = { KEY(SumConfig, value, "%g"),
	KEY(SumConfig, steps),
	KEY(SumConfig, accumulator, TYPES), KEY(SumConfig, stored, TYPES),
	KEY(SumConfig, cast),
	{ 0 } };

static void plan_sums(Plan *plan)
{
	for (int i = 0; i < NTASKS; i++)
		for (int k = 0; k < NFORMATS; k++) {
			SumConfig s = sum_of(i, k);
			plan_add(plan, &s);
			s.cast = true;
			if (s.accumulator != s.stored)
				plan_add(plan, &s);
		}
}

// run one row of sums
static void run_sums(Row *row, const void *config)
{
	const SumConfig *s = config;
	float x = round_to(s->stored, (float)s->value);
	if (s->cast)
		x = round_to(s->accumulator, x);
	long stall, n = s->steps;
	double sum = add_up(s->accumulator, x, n, &stall), stored = n * (double)x;
	// die if the walk over binades ends elsewhere
	Binade walk[MAX_BINADES];
	int binades = walk_binades(s->accumulator, x, n, walk);
	if (walk[binades - 1].last != sum)
		die("%g: the loop gives %.9g, the walk %.9g", s->value, sum,
		    walk[binades - 1].last);
	row_set(row, "addend", "%.12g", x);
	row_set(row, "sum", "%.10g", sum);
	row_set(row, "representation_error", "%.6g", stored - n * s->value);
	row_set(row, "accumulation_error", "%.6g", sum - stored);
	row_set(row, "error", "%.6g", sum - n * s->value);
	if (stall)
		row_set(row, "stalls_at", "%ld", stall);
}

// plan the rows of binades
static const Key binade_keys[] = { KEY(SumConfig, value, "%g"),
	KEY(SumConfig, accumulator, TYPES), KEY(SumConfig, stored, TYPES),
	KEY(SumConfig, exponent),
	{ 0 } };

static int walk_sum(const SumConfig *s, Binade walk[], float *x)
{
	*x = round_to(s->stored, (float)s->value);
	return walk_binades(s->accumulator, *x, s->steps, walk);
}

// plan a row for each binade
static void plan_binades(Plan *plan)
{
	Binade walk[MAX_BINADES];
	float x;
	for (int i = 0; i < NTASKS; i++)
		for (int k = 0; k < NFORMATS; k++) {
			SumConfig s = sum_of(i, k);
			for (int b = 0, n = walk_sum(&s, walk, &x); b < n; b++) {
				s.exponent = walk[b].exponent;
				plan_add(plan, &s);
			}
		}
}

// run one row of binades
static void run_binades(Row *row, const void *config)
{
	const SumConfig *s = config;
	Binade walk[MAX_BINADES], *b = walk;
	float x;
	walk_sum(s, walk, &x);
	while (b->exponent != s->exponent)
		b++;
	row_set(row, "from", "%.10g", ldexp(1, b->exponent));
	row_set(row, "ulp", "%.10g", b->ulp);
	row_set(row, "addend_ulps", "%.9g", x / b->ulp);
	row_set(row, "kept_ulps", "%.9g", b->kept);
	row_set(row, "additions", "%ld", b->steps);
	row_set(row, "first", "%.10g", b->first);
	row_set(row, "last", "%.10g", b->last);
	row_set(row, "drift", "%.6g", b->last - b->first - b->steps * (double)x);
}

// plan and run the trace
typedef struct TraceConfig { long step; } TraceConfig;
static const Key trace_keys[] = { KEY(TraceConfig, step), { 0 } };

static void plan_trace(Plan *plan)
{
	for (long step = 10; step <= tasks[0].steps; step += 10)
		plan_add(plan, &(TraceConfig){ step });
}

static void run_trace(Row *row, const void *config)
{
	long step = ((const TraceConfig *)config)->step, stall;
	row_set(row, "exact", "%.10g", step * tasks[0].value);
	for (int k = 0; k < NFORMATS; k++) {
		float x = round_to(formats[k].stored, (float)tasks[0].value);
		float sum = add_up(formats[k].accumulator, x, step, &stall);
		row_set(row, formats[k].column, "%.10g", sum);
	}
}

// plan and run the facts about formats
typedef struct FormatConfig { Type format; } FormatConfig;
static const Key format_keys[] = { KEY(FormatConfig, format, TYPES), { 0 } };

static void plan_formats(Plan *plan)
{
	plan_add(plan, &(FormatConfig){ FP32 });
	plan_add(plan, &(FormatConfig){ TF32 });
	plan_add(plan, &(FormatConfig){ BF16 });
	plan_add(plan, &(FormatConfig){ FP16 });
}

static void run_formats(Row *row, const void *config)
{
	Type t = ((const FormatConfig *)config)->format;
	int E = type_formats[t].exponent_bits, M = type_formats[t].fraction_bits;
	row_set(row, "bytes", "%zu", type_size(t));
	row_set(row, "exponent_bits", "%d", E);
	row_set(row, "fraction_bits", "%d", M);
	row_set(row, "smallest", "%.4g", type_spacing(t, 0));
	row_set(row, "smallest_normal", "%.4g", type_min_normal(t));
	row_set(row, "largest", "%.6g", type_max(t));
	row_set(row, "spacing_at_one", "%.4g", type_spacing(t, 1));
}

// describe the sweeps of accumulation to the harness
const Experiment experiment = {
	.about = "adds one number again and again, in several number formats",
	.cpu_scale = "computed", .cpu_only = true,
	.sweeps = SWEEPS(
		{ "sums", sum_keys, plan_sums, run_sums },
		{ "binades", binade_keys, plan_binades, run_binades },
		{ "trace", trace_keys, plan_trace, run_trace },
		{ "formats", format_keys, plan_formats, run_formats }),
};
