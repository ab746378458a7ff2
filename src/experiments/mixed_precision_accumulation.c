#include "experiments/harness.h"

#include <math.h>
#include <string.h>

#include "base/accumulate.h"
#include "base/error.h"

typedef struct Task { const char *value; double exact; long steps; } Task;

static const Task tasks[] = {
	{ "0.01", 0.01, 1000 }, { "0.001", 0.001, 10000 },
};
static const Type formats[][2] = {          /* accumulator, stored addend */
	{ FP32, FP32 }, { FP16, FP16 }, { FP32, FP16 },
	{ BF16, BF16 }, { FP32, BF16 },
};
enum { NTASKS = 2, NFORMATS = 5 };

static const Task *find_task(const char *value)
{
	return strcmp(value, tasks[0].value) == 0 ? &tasks[0] : &tasks[1];
}

static Type find_type(const char *name)
{
	int t = 0;
	while (strcmp(type_names[t], name) != 0)
		t++;
	return (Type)t;
}
static void plan_sums(Plan *plan)
{
	for (int i = 0; i < NTASKS; i++)
		for (int k = 0; k < NFORMATS; k++)
			for (int cast = 0; cast <= (formats[k][0] != formats[k][1]); cast++)
				plan_add(plan, "%s\t%ld\t%s\t%s\t%s", tasks[i].value,
				         tasks[i].steps, type_names[formats[k][0]],
				         type_names[formats[k][1]], cast ? "yes" : "no");
}
static void run_sums(Row *row)
{
	const Task *task = find_task(row_text(row, "value"));
	Type accumulator = find_type(row_text(row, "accumulator"));
	float x = round_to(find_type(row_text(row, "stored")), (float)task->exact);
	if (strcmp(row_text(row, "cast"), "yes") == 0)
		x = round_to(accumulator, x);
	long stall, n = task->steps;
	double sum = add_up(accumulator, x, n, &stall), stored = n * (double)x;
	Binade walk[MAX_BINADES];
	int binades = walk_binades(accumulator, x, n, walk);
	if (walk[binades - 1].last != sum)
		die("%s: the loop gives %.9g, the walk %.9g", task->value, sum,
		    walk[binades - 1].last);
	row_set(row, "addend", "%.12g", x);
	row_set(row, "sum", "%.10g", sum);
	row_set(row, "representation_error", "%.6g", stored - n * task->exact);
	row_set(row, "accumulation_error", "%.6g", sum - stored);
	row_set(row, "error", "%.6g", sum - n * task->exact);
	if (stall)
		row_set(row, "stalls_at", "%ld", stall);
}
static int walk_case(const Task *task, int k, Binade walk[], float *x)
{
	*x = round_to(formats[k][1], (float)task->exact);
	return walk_binades(formats[k][0], *x, task->steps, walk);
}

static void plan_binades(Plan *plan)
{
	Binade walk[MAX_BINADES];
	float x;
	for (int i = 0; i < NTASKS; i++)
		for (int k = 0; k < NFORMATS; k++)
			for (int b = 0, n = walk_case(&tasks[i], k, walk, &x); b < n; b++)
				plan_add(plan, "%s\t%s\t%s\t%d", tasks[i].value,
				         type_names[formats[k][0]], type_names[formats[k][1]],
				         walk[b].exponent);
}
static void run_binades(Row *row)
{
	Type accumulator = find_type(row_text(row, "accumulator"));
	Type stored = find_type(row_text(row, "stored"));
	Binade walk[MAX_BINADES], *b = walk;
	float x;
	int k = 0;
	while (formats[k][0] != accumulator || formats[k][1] != stored)
		k++;
	walk_case(find_task(row_text(row, "value")), k, walk, &x);
	while (b->exponent != row_int(row, "exponent"))
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
static void plan_trace(Plan *plan)
{
	for (long step = 10; step <= tasks[0].steps; step += 10)
		plan_add(plan, "%ld", step);
}

static void run_trace(Row *row)
{
	static const char *const columns[NFORMATS] = {
		"fp32", "fp16", "fp32_fp16", "bf16", "fp32_bf16",
	};
	long step = row_int(row, "step"), stall;
	row_set(row, "exact", "%.10g", step * tasks[0].exact);
	for (int k = 0; k < NFORMATS; k++) {
		float x = round_to(formats[k][1], (float)tasks[0].exact);
		float sum = add_up(formats[k][0], x, step, &stall);
		row_set(row, columns[k], "%.10g", sum);
	}
}
static void plan_formats(Plan *plan)
{
	plan_add(plan, "fp32");
	plan_add(plan, "tf32");
	plan_add(plan, "bf16");
	plan_add(plan, "fp16");
}

static void run_formats(Row *row)
{
	Type t = find_type(row_text(row, "format"));
	int E = type_formats[t].exponent_bits, M = type_formats[t].fraction_bits;
	row_set(row, "bytes", "%zu", type_size(t));
	row_set(row, "exponent_bits", "%d", E);
	row_set(row, "fraction_bits", "%d", M);
	row_set(row, "smallest", "%.4g", type_spacing(t, 0));
	row_set(row, "smallest_normal", "%.4g", type_min_normal(t));
	row_set(row, "largest", "%.6g", type_max(t));
	row_set(row, "spacing_at_one", "%.4g", type_spacing(t, 1));
}
static const Sweep sweeps[] = {
	{ "sums", "value steps accumulator stored cast",
	  "addend sum representation_error accumulation_error error stalls_at",
	  plan_sums, run_sums },
	{ "binades", "value accumulator stored exponent",
	  "from ulp addend_ulps kept_ulps additions first last drift",
	  plan_binades, run_binades },
	{ "trace", "step", "exact fp32 fp16 fp32_fp16 bf16 fp32_bf16",
	  plan_trace, run_trace },
	{ "formats", "format", "bytes exponent_bits fraction_bits "
	  "smallest smallest_normal largest spacing_at_one",
	  plan_formats, run_formats },
	{ 0 }
};

int main(int argc, char **argv)
{
	const Experiment experiment = {
		.name = "mixed_precision_accumulation", .sweeps = sweeps,
		.about = "adds one number again and again, in several number formats",
	};
	return harness_main(&experiment, argc, argv);
}
