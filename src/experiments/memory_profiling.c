/* memory_profiling: what is in memory, when, and why */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "experiments/harness.h"
#include "experiments/step.h"
#include "model/account.h"

static int size = -1, precision = -1, fusion = -1;
static long context, batch = 4;
static const Option options[] = {
	{ "size", OPT_CHOICE, &size, SIZES, "this model only" },
	{ "context", OPT_INT, &context, "1..65536", "this context only" },
	{ "batch", OPT_INT, &batch, "1..4096", "sequences in a batch" },
	{ "precision", OPT_CHOICE, &precision, PRECISIONS, "these formats only" },
	{ "fusion", OPT_CHOICE, &fusion, FUSIONS, "this path only" },
	{ 0 }
};

/* fp32 and bf16, if no precision is asked for; modes: step and forward, or
 * without a name */
static void plan_contexts(Plan *plan, int which, const long *contexts, int n,
	bool modes)
{
	for (int f = 0; f < 2; f++)
		for (int p = 0; p < NPOLICIES; p++)
			for (int c = 0; c < n; c++)
				for (int train = !modes; train < 2; train++) {
					long T = harness_on_gpu() ? contexts[c]
						: contexts[c] / SCALE;
					if ((fusion >= 0 && f != fusion) || (context && c > 0)
						|| (precision >= 0 ? p != precision : p > 1))
						continue;
					plan_add(plan, "%s\t%ld\t%s\t%s%s",
						model_sizes[which].name, context ? context : T,
						policies[p].name, fusion_names[f], !modes ? ""
						: train ? "\tstep" : "\tforward");
				}
}

/* the problem's model, unless another is asked for */
static int shown(void)
{
	return size < 0 ? NSIZES - 1 : size;
}

static void plan(Plan *plan)
{
	static const long contexts[] = { 128, 256, 512, 2048 };
	plan_contexts(plan, shown(), contexts, 4, true);
}

static void plan_shown(Plan *plan)
{
	static const long contexts[] = { 512 };
	plan_contexts(plan, shown(), contexts, 1, true);
}

static void plan_sizes(Plan *plan)
{
	static const long contexts[] = { 128, 256, 512, 1024 };
	for (int s = 0; s < NSIZES; s++)
		if (size < 0 || s == size)
			plan_contexts(plan, s, contexts, 4, false);
}
static const char *const phases[] = { "forward", "backward", "optimizer" };
enum { NPHASES = sizeof phases / sizeof *phases };

typedef struct Logged {
	Device *device;
	ptrdiff_t before[NCATEGORIES];  /* bytes in use before the first event */
	size_t starts[3];               /* first event of each step; the end */
} Logged;

static Logged log_steps(const Row *row)
{
	bool train = strcmp(row_text(row, "mode"), "step") == 0;
	Training t = training_of(row, batch, train);
	Device *d = t.m->device;
	Logged l = { .device = d };
	for (int c = 0; c < NCATEGORIES; c++)
		l.before[c] = (ptrdiff_t)d->active[c];
	device_record(d, true);
	for (int step = 0; step < 2; step++) {
		l.starts[step] = d->nlog;
		timed_step(t.m, &t.adamw, &t.batch, train ? MODE_TRAIN : MODE_FORWARD);
	}
	l.starts[2] = d->nlog;
	device_record(d, false);
	if (d->unlogged)
		die("two steps have %zu events more than the log holds", d->unlogged);
	return l;
}

/* forward, backward, optimizer, or between them */
static const char *phase_of(const MemoryEvent *e)
{
	for (const RangePath *at = e->range; at; at = at->outer)
		for (int p = 0; p < NPHASES; p++)
			if (strcmp(at->name, phases[p]) == 0)
				return phases[p];
	return "between";
}

static ptrdiff_t total_of(const ptrdiff_t active[NCATEGORIES])
{
	ptrdiff_t total = 0;
	for (int c = 0; c < NCATEGORIES; c++)
		total += active[c];
	return total;
}

static void set_MiB(Row *row, const char *name, const char *kind, double nbytes)
{
	char column[64];
	snprintf(column, sizeof column, "%s%s_MiB", name, kind);
	row_set(row, column, "%.2f", nbytes / 1048576);
}

static void set_memory(Row *row, const char *total,
	const ptrdiff_t active[NCATEGORIES])
{
	set_MiB(row, total, "", total_of(active));
	for (int c = 0; c < NCATEGORIES; c++)
		set_MiB(row, category_names[c], "", active[c]);
}
static void run_peaks(Row *row)
{
	Logged l = log_steps(row);
	ptrdiff_t active[NCATEGORIES], peak[NPHASES][NCATEGORIES];
	memcpy(active, l.before, sizeof active);
	for (int step = 0; step < 2; step++) {
		int allocations[NPHASES] = { 0 };
		memset(peak, 0, sizeof peak);
		for (size_t i = l.starts[step]; i < l.starts[step + 1]; i++) {
			const MemoryEvent *e = &l.device->log[i];
			active[e->category] += e->nbytes;
			for (int p = 0; p < NPHASES; p++)
				if (phase_of(e) == phases[p]) {
					allocations[p] += e->nbytes > 0;
					if (total_of(active) > total_of(peak[p]))
						memcpy(peak[p], active, sizeof active);
				}
		}
		for (int p = 0; p < NPHASES; p++) {
			if (total_of(peak[p]) == 0)
				continue;               /* the phase allocates nothing */
			row_set(row, "step", "%d", step);
			row_set(row, "phase", "%s", phases[p]);
			set_memory(row, "peak", peak[p]);
			row_set(row, "allocations", "%d", allocations[p]);
			row_emit(row);
		}
	}
}
static void run_timeline(Row *row)
{
	enum { MOMENTS = 300 };
	Logged l = log_steps(row);
	const MemoryEvent *log = l.device->log;
	ptrdiff_t active[NCATEGORIES], most[NCATEGORIES];
	memcpy(active, l.before, sizeof active);
	for (size_t i = 0; i < l.starts[1]; i++)
		active[log[i].category] += log[i].nbytes;
	size_t first = l.starts[1], n = l.starts[2] - first, at = first;
	for (size_t i = 0; i < n; i++) {
		const MemoryEvent *e = &log[first + i];
		active[e->category] += e->nbytes;
		bool starts = i == 0 || i * MOMENTS / n != (i - 1) * MOMENTS / n;
		if (starts || total_of(active) > total_of(most)) {
			memcpy(most, active, sizeof most);
			at = first + i;
		}
		if (i + 1 < n && (i + 1) * MOMENTS / n == i * MOMENTS / n)
			continue;
		row_set(row, "event", "%zu", at - first);
		row_set(row, "ms", "%.4f", log[at].ms - log[first].ms);
		row_set(row, "phase", "%s", phase_of(&log[at]));
		set_memory(row, "total", most);
		row_emit(row);
	}
}
typedef struct Tensor {
	const char *what;
	const RangePath *range;
	Category category;
	ptrdiff_t nbytes;
	int allocations;
} Tensor;

static int by_size(const void *a, const void *b)
{
	ptrdiff_t x = ((const Tensor *)a)->nbytes, y = ((const Tensor *)b)->nbytes;
	return x < y ? 1 : x > y ? -1 : strcmp(((const Tensor *)a)->what,
		((const Tensor *)b)->what);
}

/* "forward, layer, attention" */
static void write_path(char *text, size_t n, const RangePath *range)
{
	if (range->outer == NULL || strcmp(range->name, "step") == 0) {
		snprintf(text, n, "%s", "");
		return;
	}
	write_path(text, n, range->outer);
	size_t length = strlen(text);
	snprintf(text + length, n - length, "%s%s", length ? ", " : "",
		range->name);
}

static void run_tensors(Row *row)
{
	enum { SHOWN = 40, MANY = 512 };
	Logged l = log_steps(row);
	Tensor tensors[MANY];
	int n = 0;
	for (size_t i = l.starts[1]; i < l.starts[2]; i++) {
		const MemoryEvent *e = &l.device->log[i];
		int t = 0;
		while (t < n && (strcmp(tensors[t].what, e->what) != 0
			|| tensors[t].nbytes != e->nbytes || tensors[t].range != e->range))
			t++;
		if (e->nbytes <= 0)
			continue;
		if (t == MANY)
			die("a step has more than %d kinds of tensors", MANY);
		if (t == n)
			tensors[n++] = (Tensor){ e->what, e->range, e->category, e->nbytes,
				0 };
		tensors[t].allocations++;
	}
	qsort(tensors, n, sizeof *tensors, by_size);
	for (int t = 0; t < n && t < SHOWN; t++) {
		char path[256];
		write_path(path, sizeof path, tensors[t].range);
		row_set(row, "rank", "%d", t + 1);
		row_set(row, "tensor", "%s", tensors[t].what);
		row_set(row, "ranges", "%s", path[0] ? path : "between");
		row_set(row, "category", "%s", category_names[tensors[t].category]);
		row_set(row, "MiB", "%.3f", tensors[t].nbytes / 1048576.0);
		row_set(row, "allocations", "%d", tensors[t].allocations);
		row_emit(row);
	}
}
static void run_account(Row *row)
{
	Training t = training_of(row, batch, true);
	Device *d = t.m->device;
	timed_step(t.m, &t.adamw, &t.batch, MODE_TRAIN);
	size_t workspace = d->active[MEM_TEMPORARY];
	device_reset_peak(d);
	timed_step(t.m, &t.adamw, &t.batch, MODE_TRAIN);
	Account a = account_of(t.m, batch, t.batch.T, true);
	set_MiB(row, "peak", "", d->total_peak - workspace);
	set_MiB(row, "derived", "", a.total);
	set_MiB(row, "workspace", "", workspace);
	for (int c = 0; c < NCATEGORIES; c++) {
		size_t other = c == MEM_TEMPORARY ? workspace : 0;
		set_MiB(row, category_names[c], "", d->peak[c] - other);
		set_MiB(row, category_names[c], "_derived", a.category[c]);
	}
}

static const char *scale(void)
{
	return harness_on_gpu() ? "course" : SCALED;
}

#define KEYS "size context precision fusion mode"
#define CATEGORIES "parameter_MiB gradient_MiB optimizer_MiB activation_MiB " \
	"temporary_MiB"
#define DERIVED "parameter_derived_MiB gradient_derived_MiB " \
	"optimizer_derived_MiB activation_derived_MiB temporary_derived_MiB"

int main(int argc, char **argv)
{
	const Study studies[] = {
		{ "peaks", KEYS, "step phase peak_MiB " CATEGORIES " allocations", plan,
			run_peaks },
		{ "timeline", KEYS, "event ms phase total_MiB " CATEGORIES, plan_shown,
			run_timeline },
		{ "tensors", KEYS, "rank tensor ranges category MiB allocations",
			plan_shown, run_tensors },
		{ "account", "size context precision fusion", "peak_MiB derived_MiB "
			"workspace_MiB " CATEGORIES " " DERIVED, plan_sizes, run_account },
		{ 0 }
	};
	const Experiment e = {
		.name = "memory_profiling", .options = options, .studies = studies,
		.about = "memory in use, by phase, by moment and by tensor",
		.scale = scale,
	};
	return harness_main(&e, argc, argv);
}
