/* memory_profiling: what is in memory, when, and why */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "experiments/harness.h"
#include "experiments/step.h"

static int size = 4, precision = -1, fusion = -1;
static long context, batch = 4;
static const Option options[] = {
	{ "size", OPT_CHOICE, &size, SIZES, "model" },
	{ "context", OPT_INT, &context, "1..65536", "this context only" },
	{ "batch", OPT_INT, &batch, "1..4096", "sequences in a batch" },
	{ "precision", OPT_CHOICE, &precision, PRECISIONS, "these formats only" },
	{ "fusion", OPT_CHOICE, &fusion, FUSIONS, "this path only" },
	{ 0 }
};

static void plan_contexts(Plan *plan, const long *contexts, int n, int lowest)
{
	for (int f = lowest; f < 2; f++)
		for (int p = 0; p < NPOLICIES; p++)
			for (int c = 0; c < n; c++)
				for (int train = 0; train < 2; train++) {
					long T = harness_on_gpu() ? contexts[c]
						: contexts[c] / SCALE;
					if ((fusion >= 0 && f != fusion) || (context && c > 0)
						|| (precision >= 0 ? p != precision : p > 1))
						continue;
					plan_add(plan, "%s\t%ld\t%s\t%s\t%s",
						model_sizes[size].name, context ? context : T,
						policies[p].name, fusion_names[f],
						train ? "step" : "forward");
				}
}

static void plan(Plan *plan)
{
	static const long contexts[] = { 128, 256, 512 };
	plan_contexts(plan, contexts, 3, 0);
}

static void plan_shown(Plan *plan)
{
	static const long contexts[] = { 512 };
	plan_contexts(plan, contexts, 1, fusion == 0 ? 0 : 1);
}
typedef struct Logged {
	Device *device;
	ptrdiff_t before[NCATEGORIES];  /* bytes in use before the first event */
	size_t starts[3];               /* first event of each step; the end */
} Logged;

static Logged log_steps(const Row *row)
{
	Shape shape = row_shape(row);
	Device *d = harness_device();
	Model *m = model_new(d, &shape, policy_find(row_text(row, "precision")),
		harness_seed);
	if (strcmp(row_text(row, "fusion"), "fused") == 0)
		model_fuse(m);
	bool train = strcmp(row_text(row, "mode"), "step") == 0;
	AdamW adamw = { 0 };
	if (train)
		adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(batch, shape.context, shape.vocab, harness_seed);
	Logged l = { .device = d };
	for (int c = 0; c < NCATEGORIES; c++)
		l.before[c] = (ptrdiff_t)d->active[c];
	device_record(d, true);
	for (int step = 0; step < 2; step++) {
		l.starts[step] = d->nlog;
		timed_step(m, &adamw, &b, train ? MODE_TRAIN : MODE_FORWARD);
	}
	l.starts[2] = d->nlog;
	device_record(d, false);
	return l;
}

/* forward, backward, optimizer, or between them */
static const char *phase_of(const MemoryEvent *e)
{
	const RangePath *at = e->range;
	while (at->outer && at->outer->outer)
		at = at->outer;
	return at->outer ? at->name : "between";
}

static ptrdiff_t total_of(const ptrdiff_t active[NCATEGORIES])
{
	ptrdiff_t total = 0;
	for (int c = 0; c < NCATEGORIES; c++)
		total += active[c];
	return total;
}

static void set_memory(Row *row, const char *total,
	const ptrdiff_t active[NCATEGORIES])
{
	static const char *const columns[NCATEGORIES] = { "parameter_MiB",
		"gradient_MiB", "optimizer_MiB", "activation_MiB", "temporary_MiB" };
	row_set(row, total, "%.2f", total_of(active) / 1048576.0);
	for (int c = 0; c < NCATEGORIES; c++)
		row_set(row, columns[c], "%.2f", active[c] / 1048576.0);
}
static void run_peaks(Row *row)
{
	static const char *const phases[] = { "forward", "backward", "optimizer" };
	Logged l = log_steps(row);
	ptrdiff_t active[NCATEGORIES], peak[3][NCATEGORIES];
	memcpy(active, l.before, sizeof active);
	for (int step = 0; step < 2; step++) {
		int allocations[3] = { 0 };
		memset(peak, 0, sizeof peak);
		for (size_t i = l.starts[step]; i < l.starts[step + 1]; i++) {
			const MemoryEvent *e = &l.device->log[i];
			active[e->category] += e->nbytes;
			for (int p = 0; p < 3; p++)
				if (strcmp(phase_of(e), phases[p]) == 0) {
					allocations[p] += e->nbytes > 0;
					if (total_of(active) > total_of(peak[p]))
						memcpy(peak[p], active, sizeof active);
				}
		}
		for (int p = 0; p < 3; p++) {
			if (total_of(peak[p]) == 0)
				continue;               /* the phase allocates nothing */
			row_set(row, "step", "%d", step);
			row_set(row, "phase", "%s", phases[p]);
			set_memory(row, "peak_MiB", peak[p]);
			row_set(row, "allocations", "%d", allocations[p]);
			row_emit(row);
		}
	}
}
static void run_timeline(Row *row)
{
	enum { MOMENTS = 400 };
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
		row_set(row, "ms", "%.4f", log[at].ms - log[first].ms);
		row_set(row, "phase", "%s", phase_of(&log[at]));
		set_memory(row, "total_MiB", most);
		row_emit(row);
	}
}
typedef struct Tensor {
	const char *what, *range;
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

static void run_tensors(Row *row)
{
	enum { SHOWN = 12, MANY = 512 };
	Logged l = log_steps(row);
	Tensor tensors[MANY];
	int n = 0;
	for (size_t i = l.starts[1]; i < l.starts[2]; i++) {
		const MemoryEvent *e = &l.device->log[i];
		const char *range = phase_of(e);
		int t = 0;
		while (t < n && (strcmp(tensors[t].what, e->what) != 0
			|| tensors[t].nbytes != e->nbytes || tensors[t].range != range))
			t++;
		if (e->nbytes <= 0 || t == MANY)
			continue;
		if (t == n)
			tensors[n++] = (Tensor){ e->what, range, e->category, e->nbytes,
				0 };
		tensors[t].allocations++;
	}
	qsort(tensors, n, sizeof *tensors, by_size);
	for (int t = 0; t < n && t < SHOWN; t++) {
		row_set(row, "rank", "%d", t + 1);
		row_set(row, "tensor", "%s", tensors[t].what);
		row_set(row, "range", "%s", tensors[t].range);
		row_set(row, "category", "%s", category_names[tensors[t].category]);
		row_set(row, "MiB", "%.3f", tensors[t].nbytes / 1048576.0);
		row_set(row, "allocations", "%d", tensors[t].allocations);
		row_emit(row);
	}
}

static const char *scale(void)
{
	return harness_on_gpu() ? "course" : SCALED;
}

#define KEYS "size context precision fusion mode"
#define CATEGORIES "parameter_MiB gradient_MiB optimizer_MiB activation_MiB " \
	"temporary_MiB"

int main(int argc, char **argv)
{
	const Study studies[] = {
		{ "peaks", KEYS, "step phase peak_MiB " CATEGORIES " allocations", plan,
			run_peaks },
		{ "timeline", KEYS, "ms phase total_MiB " CATEGORIES, plan_shown,
			run_timeline },
		{ "tensors", KEYS, "rank tensor range category MiB allocations", plan,
			run_tensors },
		{ 0 }
	};
	const Experiment e = {
		.name = "memory_profiling", .options = options, .studies = studies,
		.about = "memory in use, by phase, by moment and by tensor",
		.scale = scale,
	};
	return harness_main(&e, argc, argv);
}
