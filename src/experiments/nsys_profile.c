/* nsys_profile: what a training step runs, by range and by kernel */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "bench/training.h"
#include "ops/array.h"
#include "profile/profile.h"
#include "profile/snapshot.h"
#include "profile/trace.h"

// read the options of the profile
static int size = -1, precision, fusion = -1;
static long context, batch = 4, warmup = 1;
static const char *trace, *folded, *snapshot;
static const Option options[] = {
	SIZE_OPTION(&size), CONTEXT_OPTION(&context), BATCH_OPTION(&batch),
	PRECISION_OPTION(&precision), FUSION_OPTION(&fusion),
	WARMUP_OPTION_IN(&warmup, "0..1000", "steps before the profile"),
	TRACE_OPTION(&trace, "the last step"),
	{ "folded", OPT_TEXT, &folded, "FILE", "the last step as folded stacks" },
	{ "snapshot", OPT_TEXT, &snapshot, "FILE", "its memory, as PyTorch's" },
	{ 0 }
};

// plan what is profiled
enum { SHOWN = 512 };           /* a context, on a GPU */

/* files that cannot be written are refused before anything is measured */
static void try_files(void)
{
	if (trace)
		file_try(trace, trace_recognised, harness_forced());
	if (folded)
		file_try(folded, folded_recognised, harness_forced());
	if (snapshot)
		file_try(snapshot, snapshot_recognised, harness_forced());
}

static void plan_one(Plan *plan, int s, long T, int f)
{
	if ((fusion < 0 || f == fusion) && (size < 0 || s == size))
		plan_add(plan, &(ModelConfig){ .size = s, context ? context : T,
			precision, f });
}

static void plan(Plan *plan)
{
	try_files();
	for (int f = 0; f < 2; f++)
		for (int s = 0; s < studied_sizes(); s++)
			for (int c = 0; c < (context ? 1 : NCONTEXTS); c++)
				plan_one(plan, s, studied_context(c), f);
}

/* the fused path has one context, unless another is asked for */
static void plan_kernels(Plan *plan)
{
	try_files();
	for (int s = 0; s < studied_sizes(); s++) {
		for (int c = 0; c < (context ? 1 : NCONTEXTS); c++)
			plan_one(plan, s, studied_context(c), 0);
		plan_one(plan, s, scaled_context(SHOWN), 1);
	}
}

static void plan_shown(Plan *plan)
{
	try_files();
	for (int f = 0; f < 2; f++)
		plan_one(plan, size < 0 ? 0 : size, scaled_context(SHOWN), f);
}

// profile one step
typedef struct Profiled {
	StepTime unprofiled, profiled;
	Profile *events, *activities;
} Profiled;

static void export(const Profile *p)
{
	if (trace)
		trace_write(p, 0, trace);
	if (snapshot)
		snapshot_write(p->device, snapshot);
	if (folded == NULL)
		return;
	FILE *f = file_begin(folded);
	folded_write(p, f);
	file_end(f, folded);
}

// profile the last of a few steps
static Profile *profile_last(Training *t, bool activities, StepTime *last)
{
	Device *d = t->m->device;
	Profile *p = NULL;
	for (long i = 0; i <= warmup; i++) {
		profile_free(&p);
		device_log_memory(d, activities && i == warmup && (trace || snapshot));
		p = profile_start(d, activities);
		*last = timed_step(t->m, &t->adamw, &t->batch, MODE_TRAIN);
		profile_stop(p);
	}
	return p;
}

static Profiled profile_step(const ModelConfig *c)
{
	Training t = training_of(c, batch, true);
	Device *d = t.m->device;
	Profiled p = { 0 };
	// take the step as it is, with events, and recorded
	for (long i = 0; i <= warmup; i++)
		p.unprofiled = timed_step(t.m, &t.adamw, &t.batch, MODE_TRAIN);
	p.events = profile_last(&t, false, &(StepTime){ 0 });
	p.activities = profile_last(&t, true, &p.profiled);
	if (p.events->lost || p.activities->lost || d->unlogged)
		die("the step has more events than a profile holds");
	export(p.activities);
	training_free(&t);
	return p;
}

static void free_profile(Profiled *p)
{
	profile_free(&p->events);
	profile_free(&p->activities);
}

// tell kernels apart by class
/* a class, its name and its column */
#define KERNEL_CLASSES_OF(FIRST, NEXT) \
	FIRST(MATMUL, "matmul", "matmul_ms") \
	NEXT(SOFTMAX, "softmax", "softmax_ms") NEXT(NORM, "norm", "norm_ms") \
	NEXT(ATTENTION, "attention", "attention_ms") \
	NEXT(FEED_FORWARD, "feed-forward", "ffn_ms") \
	NEXT(OPTIMIZER, "optimizer", "optimizer_ms") NEXT(REST, "rest", "rest_ms")
typedef enum { CHOICE_IDS(KERNEL_CLASSES_OF) NKERNEL_CLASSES } KernelClass;
static const char *const kernel_class_names[] = {
	CHOICE_NAMES(KERNEL_CLASSES_OF) },
	*const kernel_class_columns[] = {
#define COLUMN_OF(id, name, column) column,
	KERNEL_CLASSES_OF(COLUMN_OF, COLUMN_OF)
};

// find the class of a kernel
static bool is_matmul(const Activity *w)
{
	static const char *const parts[] = { "gemm", "nvjet", "cutlass", "splitK",
		"gemv", "matmul_fallback" };
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (w->kind == ACTIVITY_KERNEL && strstr(w->name, parts[i]))
			return true;
	return false;
}

static KernelClass class_of(const Profile *p, const Activity *w)
{
	if (is_matmul(w))
		return MATMUL;
	for (int s = w->range; s >= 0; s = p->ranges[s].parent)
		for (KernelClass c = SOFTMAX; c < REST; c++)
			if (strcmp(p->ranges[s].name, kernel_class_names[c]) == 0)
				return c;
	return REST;
}

// sum the kernels of a range
typedef struct RangeSum {
	int activities, kernels, ranges;
	double busy_us, projected_us, event_us, class_us[NKERNEL_CLASSES];
} RangeSum;

// add up the kernels that ran in a range
static void add_activities(RangeSum *sum, const Profile *p, const char *name,
	const char *phase)
{
	int range = -1;
	double last = 0;
	for (size_t i = 0; i < p->nactivities; i++) {
		const Activity *w = &p->activities[i];
		int in = profile_within(p, w->range, name);
		if (in < 0 || profile_within(p, in, phase) < 0)
			continue;
		assert(w->start_us >= last || in == range); /* they do not interleave */
		if (in != range)
			range = in, last = w->start_us;
		sum->activities++;
		sum->kernels += w->kind == ACTIVITY_KERNEL;
		sum->class_us[class_of(p, w)] += w->end_us - w->start_us;
		if (w->end_us > last) {
			double from = w->start_us > last ? w->start_us : last;
			sum->busy_us += w->end_us - from;
			sum->projected_us += w->end_us - last;
			last = w->end_us;
		}
	}
}

// add up the entries of a range
/* sums over all ranges of that name that lie in the phase */
static RangeSum sum_range(const Profiled *p, const char *name, const char *phase)
{
	RangeSum sum = { 0 };
	add_activities(&sum, p->activities, name, phase);
	for (int s = 0; s < p->events->nranges; s++) {
		const Range *range = &p->events->ranges[s];
		if (strcmp(range->name, name) == 0
			&& profile_within(p->events, s, phase) >= 0) {
			sum.ranges++;
			sum.event_us += range->device_us;
		}
	}
	return sum;
}

// give a row for each range
static const struct { const char *label, *name, *phase; } ranges[] = {
	{ "forward", "forward", "forward" },
	{ "backward", "backward", "backward" },
	{ "optimizer", "optimizer", "optimizer" },
	{ "forward norm", "norm", "forward" },
	{ "forward attention", "attention", "forward" },
	{ "forward scores", "scores", "forward" },
	{ "forward softmax", "softmax", "forward" },
	{ "forward values", "values", "forward" },
	{ "forward flash", "flash", "forward" },
	{ "forward feed-forward", "feed-forward", "forward" },
	{ "backward norm", "norm", "backward" },
	{ "backward attention", "attention", "backward" },
	{ "backward scores", "scores", "backward" },
	{ "backward softmax", "softmax", "backward" },
	{ "backward values", "values", "backward" },
	{ "backward flash", "flash", "backward" },
	{ "backward feed-forward", "feed-forward", "backward" },
};
enum { NRANGES = sizeof ranges / sizeof *ranges, NPHASES = 3 };

// set the cells of a range
static void set_if(Row *row, const char *column, bool known, double value)
{
	row_set(row, column, known ? "%.4f" : "-", value);
}

static void set_busy(Row *row, const RangeSum *s, bool seen)
{
	set_if(row, "busy_ms", seen, s->busy_us * 1e-3);
	set_if(row, "projected_ms", seen, s->projected_us * 1e-3);
	set_if(row, "busy_fraction", seen, s->busy_us / s->projected_us);
	for (KernelClass c = 0; c < NKERNEL_CLASSES; c++)
		set_if(row, kernel_class_columns[c], seen, s->class_us[c] * 1e-3);
}

// give a row for each range of a step
static void run_ranges(Row *row, const void *config)
{
	Profiled p = profile_step(config);
	bool seen = p.activities->sees_activities;
	const double unprofiled[NRANGES] = { p.unprofiled.fwd_ms,
		p.unprofiled.bwd_ms,
		p.unprofiled.opt_ms }, profiled[NRANGES] = { p.profiled.fwd_ms,
		p.profiled.bwd_ms, p.profiled.opt_ms };
	for (int r = 0; r < NRANGES; r++) {
		RangeSum s = sum_range(&p, ranges[r].name, ranges[r].phase);
		if (s.ranges == 0)
			continue;                   /* the path has no such range */
		row_set(row, "range", "%s", ranges[r].label);
		row_set(row, "activities", seen ? "%d" : "-", s.activities);
		row_set(row, "kernels", seen ? "%d" : "-", s.kernels);
		set_if(row, "unprofiled_ms", r < NPHASES, unprofiled[r]);
		set_if(row, "profiled_ms", r < NPHASES, profiled[r]);
		set_if(row, "event_ms", true, s.event_us * 1e-3);
		set_busy(row, &s, seen);
		row_emit(row);
	}
	free_profile(&p);
}

// give a row for each kernel
typedef struct KernelTotal {
	const char *name;
	KernelClass class;
	int calls;
	double us, least, most;
} KernelTotal;

// sort the kernels of a phase by their time
static int by_time(const void *a, const void *b)
{
	double x = ((const KernelTotal *)a)->us, y = ((const KernelTotal *)b)->us;
	return x < y ? 1 : x > y ? -1 : 0;
}

/* totals: room for nactivities; returns how many different kernels there are */
static int total_by_name(const Profile *p, const char *phase, KernelTotal *totals)
{
	int n = 0;
	for (size_t i = 0; i < p->nactivities; i++) {
		const Activity *w = &p->activities[i];
		if (profile_within(p, w->range, phase) < 0)
			continue;
		int t = 0;
		while (t < n && totals[t].name != w->name)
			t++;
		double us = w->end_us - w->start_us;
		if (t == n)
			totals[n++] = (KernelTotal){ w->name, class_of(p, w), 0, 0, us, us };
		totals[t].calls++;
		totals[t].us += us;
		totals[t].least = us < totals[t].least ? us : totals[t].least;
		totals[t].most = us > totals[t].most ? us : totals[t].most;
	}
	qsort(totals, n, sizeof *totals, by_time);
	return n;
}

// list the kernels that take longest
static void run_kernels(Row *row, const void *config)
{
	enum { LISTED = 12 };
	Profiled p = profile_step(config);
	KernelTotal *totals =
		need(malloc((p.activities->nactivities + 1) * sizeof *totals));
	if (!p.activities->sees_activities)
		row_skip(row, "the device does not tell its kernels");
	for (int r = 0; r < NPHASES; r++) {
		int n = total_by_name(p.activities, ranges[r].name, totals);
		double all = 0;
		for (int t = 0; t < n; t++)
			all += totals[t].us;
		for (int t = 0; t < n && t < LISTED; t++) {
			row_set(row, "range", "%s", ranges[r].label);
			row_set(row, "rank", "%d", t + 1);
			row_set(row, "kernel", "%s", totals[t].name);
			row_set(row, "class", "%s", kernel_class_names[totals[t].class]);
			row_set(row, "fraction", "%.4f", totals[t].us / all);
			row_set(row, "total_ms", "%.4f", totals[t].us * 1e-3);
			row_set(row, "calls", "%d", totals[t].calls);
			row_set(row, "mean_us", "%.3f", totals[t].us / totals[t].calls);
			row_set(row, "min_us", "%.3f", totals[t].least);
			row_set(row, "max_us", "%.3f", totals[t].most);
			row_emit(row);
		}
	}
	free(totals);
	free_profile(&p);
}

// give a row for each range and each kernel
static void set_interval(Row *row, int lane, const char *kind, const char *name,
	double start_us, double end_us)
{
	row_set(row, "lane", "%d", lane);
	row_set(row, "kind", "%s", kind);
	row_set(row, "name", "%s", name);
	row_set(row, "start_us", "%.2f", start_us);
	row_set(row, "end_us", "%.2f", end_us);
	row_emit(row);
}

// give an interval to each range and kernel
static void run_timeline(Row *row, const void *config)
{
	enum { DEPTH = 6 };
	Profiled profiled = profile_step(config);
	const Profile *p = profiled.activities;
	double zero = 0, start, end;
	for (int s = 0; s < p->nranges; s++) {
		profile_interval(p, s, &start, &end);
		zero = s == 0 ? start : zero;
		set_interval(row, profile_depth(p, s), "range", p->ranges[s].name,
			start - zero, end - zero);
	}
	for (size_t i = 0; i < p->nactivities; i++) {
		const Activity *w = &p->activities[i];
		KernelClass class = class_of(p, w);
		set_interval(row, DEPTH + class, kernel_class_names[class], w->name,
			w->start_us - zero, w->end_us - zero);
	}
	free_profile(&profiled);
}

// time the recording of events
typedef struct OverheadConfig {
	const char *what;
	bool range, launch, allocation;
	bool events, kernels, log;
} OverheadConfig;
static const Key cost_keys[] = { KEY(OverheadConfig, what), { 0 } };

static const OverheadConfig costs[] = {
	{ "range", .range = true },
	{ "range, events", .range = true, .events = true },
	{ "range, kernels", .range = true, .kernels = true },
	{ "launch", .launch = true },
	{ "launch, kernels", .launch = true, .kernels = true },
	{ "allocation", .allocation = true },
	{ "allocation, logged", .allocation = true, .log = true },
};
enum { NCOSTS = sizeof costs / sizeof *costs, BLOCKS = 512 };

static void plan_overhead(Plan *plan)
{
	for (int i = 0; i < NCOSTS; i++)
		plan_add(plan, &costs[i]);
}

// repeat a call that may be recorded
static void repeat_call(Device *d, const OverheadConfig *cost, Array few, int n)
{
	const Ops *ops = ops_for(d);
	for (int i = 0; i < n && cost->range; i++)
		RANGE(d, "empty") { }
	for (int i = 0; i < n && cost->launch; i++)
		ops->fill(d, few, 0, 32);
	for (int i = 0; i < n && cost->allocation; i++)
		device_free(d, device_alloc(d, 4096, MEM_TEMPORARY, "block"));
}

// time repeated calls with and without recording
static void run_overhead(Row *row, const void *config)
{
	Device *d = harness_device();
	const OverheadConfig *cost = config;
	int n = cost->allocation || (cost->range && !cost->events && !cost->kernels)
		? 1000000 : 4000;
	void *blocks[BLOCKS];
	Array few = array_new(d, 32, FP32, MEM_TEMPORARY, "few");
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = device_alloc(d, 64 * (i + 100), MEM_TEMPORARY, "others");
	repeat_call(d, cost, few, 100);
	Profile *p = cost->events || cost->kernels
		? profile_start(d, cost->kernels) : NULL;
	device_log_memory(d, cost->log);
	double start = device_now_ms(d);
	repeat_call(d, cost, few, n);
	double ms = device_now_ms(d) - start;
	device_log_memory(d, false);
	if (p)
		profile_stop(p);
	profile_free(&p);
	for (int i = 0; i < BLOCKS; i++)
		device_free(d, blocks[i]);
	device_free(d, few.at);
	row_set(row, "count", "%d", n);
	row_set(row, "each_ns", "%.1f", ms * 1e6 / n);
}

static const Key keys[] = { MODEL_KEYS, { 0 } };

const Experiment experiment = {
	.about = "kernels of a training step, by range and by name",
	.options = options, .cpu_scale = SCALED, .sweeps = SWEEPS(
		{ "ranges", keys, plan, run_ranges },
		{ "kernels", keys, plan_kernels, run_kernels },
		{ "timeline", keys, plan_shown, run_timeline },
		{ "overhead", cost_keys, plan_overhead, run_overhead }),
};
