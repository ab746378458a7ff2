/* memory_profiling: what is in memory, when, and why */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/training.h"
#include "estimate/memory_estimate.h"

// read the options of the memory's profile
static int size = -1, precision = -1, fusion = -1;
static long context, batch = 4;
static const Option options[] = {
	SIZE_OPTION(&size), CONTEXT_OPTION(&context), BATCH_OPTION(&batch),
	PRECISION_OPTION(&precision), FUSION_OPTION(&fusion),
	{ 0 }
};

/* the problem's model, unless another is asked for */
static int shown_size(void)
{
	return size < 0 ? SIZE_2_7B : size;
}

/* the number of its blocks, scaled down on a CPU */
static long depth_of_shown(void)
{
	Shape s = model_sizes[shown_size()].shape;
	return (harness_on_gpu() ? s : scaled_down(s)).layers;
}

typedef struct MemoryConfig {
	ModelConfig model;
	int mode;
	long layers;
} MemoryConfig;
#define MEMORY_MODES_OF(FIRST, NEXT) FIRST(FORWARD, "forward") NEXT(STEP, "step")
enum { CHOICE_IDS(MEMORY_MODES_OF) };

// plan rows of one model
/* rows of one model: fp32 and bf16, if no precision is asked for, along both
 * paths, with each of the modes or numbers of layers */
static void plan_model(Plan *plan, int which, int ncontexts,
	const long *contexts, int nothers, const MemoryConfig *others)
{
	for (int f = 0; f < 2; f++)
		for (int p = 0; p < NAUTOCAST; p++)
			for (int c = 0; c < ncontexts; c++) {
				long T = scaled_context(contexts[c]);
				if ((fusion >= 0 && f != fusion) || (context && c > 0)
					|| (precision >= 0 ? p != precision : p > 1))
					continue;
				for (int i = 0; i < nothers; i++) {
					MemoryConfig c = others[i];
					c.model = (ModelConfig){ .size = which,
						context ? context : T, p, f };
					plan_add(plan, &c);
				}
			}
}

// plan each sweep over the memory of a model
static const MemoryConfig modes[] = { { .mode = FORWARD }, { .mode = STEP } },
	one[] = { { .layers = 0 } };
static const long contexts[] = { 128, 256, 512, 2048 }, at_512[] = { 512 },
	of_sizes[] = { 128, 256, 512, 1024 };

static void plan(Plan *plan)
{
	/* a CPU takes long for the last */
	plan_model(plan, shown_size(), harness_on_gpu() ? 4 : 3, contexts, 2, modes);
}

static void plan_shown(Plan *plan)
{
	plan_model(plan, shown_size(), 1, at_512, 2, modes);
}

static void plan_blocks(Plan *plan)
{
	plan_model(plan, shown_size(), 1, at_512, 1, one);
}

static void plan_depths(Plan *plan)
{
	const MemoryConfig layers[] = { { .layers = depth_of_shown() },
		{ .layers = depth_of_shown() - 1 } };
	plan_model(plan, shown_size(), 1, at_512, 2, layers);
}

static void plan_sizes(Plan *plan)
{
	for (int s = 0; s < NSIZES; s++)
		if (size < 0 ? s < studied_sizes() : s == size)
			plan_model(plan, s, harness_on_gpu() ? 4 : 3, of_sizes, 1, one);
}

// log the memory of steps
static const char *const phases[] = { "forward", "backward", "optimizer" };
enum { NPHASES = sizeof phases / sizeof *phases, MOST_RANGES = 1024 };

typedef struct MemoryLog {
	Device *device;
	ptrdiff_t before[NCATEGORIES];  /* bytes in use before the first event */
	size_t starts[3];               /* first event of each step; the end */
	/* first event of each block's range, and the one after its last */
	size_t begins[MOST_RANGES], ends[MOST_RANGES];
	int nranges, nested, at;        /* ranges around; where the block's is */
} MemoryLog;

// note where a block begins and ends
static void note_block(void *logged, const char *name)
{
	MemoryLog *l = logged;
	if (name == NULL && l->nested-- == l->at) {
		l->ends[l->nranges++] = l->device->nlog;
		l->at = -1;
	} else if (name && ++l->nested && strcmp(name, "layer") == 0) {
		if (l->nranges == MOST_RANGES)
			die("two steps have more than %d blocks", MOST_RANGES);
		l->begins[l->nranges] = l->device->nlog;
		l->at = l->nested;
	}
}

// log two steps
static MemoryLog *log_steps(Training *t, Mode mode)
{
	static MemoryLog l;
	Device *d = l.device = t->m->device;
	for (int c = 0; c < NCATEGORIES; c++)
		l.before[c] = (ptrdiff_t)d->active[c];
	d->watch = note_block, d->watcher = &l, l.at = -1;
	device_log_memory(d, true);
	for (int step = 0; step < 2; step++) {
		l.starts[step] = d->nlog;
		timed_step(t->m, &t->adamw, &t->batch, mode);
	}
	l.starts[2] = d->nlog;
	device_log_memory(d, false);
	d->watch = NULL;
	if (d->unlogged)
		die("two steps have %zu events more than the log holds", d->unlogged);
	return &l;
}

/* a forward pass that keeps nothing, or whole steps */
static MemoryLog *log_config(const MemoryConfig *c)
{
	bool train = c->mode == STEP;
	Training t = training_of(&c->model, batch, train);
	return log_steps(&t, train ? MODE_TRAIN : MODE_FORWARD);
}

// find the phase of an event
/* forward, backward or optimizer; "between": none of them */
static const char *phase_of(const MemoryEvent *e)
{
	for (const RangePath *at = e->range; at; at = at->outer)
		for (int p = 0; p < NPHASES; p++)
			if (strcmp(at->name, phases[p]) == 0)
				return phases[p];
	return "between";
}

// set bytes by category
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

// give a row for each phase
static void run_peaks(Row *row, const void *config)
{
	MemoryLog *l = log_config(config);
	ptrdiff_t active[NCATEGORIES], peak[NPHASES][NCATEGORIES];
	memcpy(active, l->before, sizeof active);
	for (int step = 0; step < 2; step++) {
		int allocations[NPHASES] = { 0 };
		memset(peak, 0, sizeof peak);
		// replay the log of a step and keep each phase's peak
		for (size_t i = l->starts[step]; i < l->starts[step + 1]; i++) {
			const MemoryEvent *e = &l->device->log[i];
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

// give a row for each moment
static void run_timeline(Row *row, const void *config)
{
	enum { MOMENTS = 300 };
	MemoryLog *l = log_config(config);
	const MemoryEvent *log = l->device->log;
	ptrdiff_t active[NCATEGORIES], most[NCATEGORIES];
	memcpy(active, l->before, sizeof active);
	for (size_t i = 0; i < l->starts[1]; i++)
		active[log[i].category] += log[i].nbytes;
	size_t first = l->starts[1], n = l->starts[2] - first, at = first;
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

// give a row for each tensor
typedef struct SavedTensor {
	const char *what;
	const RangePath *range;
	Category category;
	ptrdiff_t nbytes;
	int allocations;
} SavedTensor;

static int by_size(const void *a, const void *b)
{
	ptrdiff_t x = ((const SavedTensor *)a)->nbytes,
		y = ((const SavedTensor *)b)->nbytes;
	return x < y ? 1 : x > y ? -1 : strcmp(((const SavedTensor *)a)->what,
		((const SavedTensor *)b)->what);
}

// set the cells of a tensor
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

static void set_tensor(Row *row, int rank, const SavedTensor *t)
{
	char path[256];
	write_path(path, sizeof path, t->range);
	row_set(row, "rank", "%d", rank + 1);
	row_set(row, "tensor", "%s", t->what);
	row_set(row, "ranges", "%s", path[0] ? path : "between");
	row_set(row, "MiB", "%.3f", t->nbytes / 1048576.0);
}

// list the tensors of a step by size
static void run_tensors(Row *row, const void *config)
{
	enum { SHOWN = 40, MANY = 512 };
	MemoryLog *l = log_config(config);
	SavedTensor tensors[MANY];
	int n = 0;
	for (size_t i = l->starts[1]; i < l->starts[2]; i++) {
		const MemoryEvent *e = &l->device->log[i];
		int t = 0;
		while (t < n && (strcmp(tensors[t].what, e->what) != 0
			|| tensors[t].nbytes != e->nbytes || tensors[t].range != e->range))
			t++;
		if (e->nbytes <= 0)
			continue;
		if (t == MANY)
			die("a step has more than %d kinds of tensors", MANY);
		if (t == n)
			tensors[n++] = (SavedTensor){ e->what, e->range, e->category,
				e->nbytes,
				0 };
		tensors[t].allocations++;
	}
	qsort(tensors, n, sizeof *tensors, by_size);
	for (int t = 0; t < n && t < SHOWN; t++) {
		set_tensor(row, t, &tensors[t]);
		row_set(row, "category", "%s", category_names[tensors[t].category]);
		row_set(row, "allocations", "%d", tensors[t].allocations);
		row_emit(row);
	}
}

// give a row for each tensor that a block saves
/* is it freed between the events from and to? */
static bool is_freed(const MemoryEvent *log, size_t from, size_t to)
{
	for (size_t i = from + 1; i < to; i++)
		if (log[i].address == log[from].address && log[i].nbytes < 0)
			return true;
	return false;
}

// list what a block in the middle saves
static void run_saved(Row *row, const void *config)
{
	enum { MANY = 64 };
	Training t = training_of(config, batch, false);
	MemoryLog *l = log_steps(&t, MODE_FORWARD_BACKWARD);
	const MemoryEvent *log = l->device->log;
	int layers = l->nranges / 4, block = 2 * layers + layers / 2, n = 0;
	SavedTensor tensors[MANY];
	double all = 0;
	for (size_t i = l->begins[block]; i < l->ends[block]; i++) {
		if (log[i].nbytes < 0 || is_freed(log, i, l->begins[3 * layers]))
			continue;
		if (n == MANY)
			die("a block saves more than %d tensors", MANY);
		tensors[n++] = (SavedTensor){ log[i].what, log[i].range, log[i].category,
			log[i].nbytes, 1 };
		all += log[i].nbytes;
	}
	qsort(tensors, n, sizeof *tensors, by_size);
	for (int i = 0; i < n; i++) {
		set_tensor(row, i, &tensors[i]);
		row_set(row, "fraction_pct", "%.2f", 100 * tensors[i].nbytes / all);
		set_MiB(row, "block", "", all);
		set_MiB(row, "derived", "", memory_estimate_block(t.m, batch, t.batch.T));
		row_emit(row);
	}
}

// give a row for each depth
static Training training_of_depth(const MemoryConfig *c)
{
	Shape shape = studied_shape(c->model.size, c->model.context);
	shape.layers = c->layers;
	Training t = { .m = model_new(harness_device(), &shape,
		&policies[c->model.precision], harness_seed) };
	if (c->model.fusion)
		model_fuse(t.m);
	t.batch = batch_random(batch, shape.context, shape.vocab, harness_seed);
	return t;
}

// measure what a block adds and frees
/* by how many bytes memory grows in these events; gradients: of gradients
 * alone */
static double memory_change(const MemoryLog *l, size_t from, size_t to,
	bool gradients)
{
	double sum = 0;
	for (size_t i = from; i < to; i++)
		if (!gradients || l->device->log[i].category == MEM_GRADIENT)
			sum += l->device->log[i].nbytes;
	return sum;
}

static void run_blocks(Row *row, const void *config)
{
	Training t = training_of_depth(config);
	MemoryLog *l = log_steps(&t, MODE_FORWARD_BACKWARD);
	int layers = l->nranges / 4;
	for (int pass = 0; pass < 2; pass++) {
		double least = INFINITY, most = -INFINITY;
		for (int i = 0; i < layers; i++) {
			int block = (2 + pass) * layers + i;
			double bytes = memory_change(l, l->begins[block], l->ends[block],
				false);
			least = fmin(least, bytes), most = fmax(most, bytes);
		}
		set_MiB(row, pass ? "bwd" : "fwd", "_least", least);
		set_MiB(row, pass ? "bwd" : "fwd", "_most", most);
	}
	set_MiB(row, "gradient", "", memory_change(l, l->starts[0], l->starts[1],
		true));
	set_MiB(row, "later", "_gradient",
		memory_change(l, l->starts[1], l->starts[2],
		true));
}

// give a row for each estimate
static void run_estimate(Row *row, const void *config)
{
	Training t = training_of(config, batch, false);
	Device *d = t.m->device;
	MemoryEstimate a = memory_estimate(t.m, batch, t.batch.T, true);
	set_MiB(row, "forward", "_derived", memory_estimate_forward(t.m, batch,
		t.batch.T));
	set_MiB(row, "derived", "", a.total);
	for (int c = 0; c < NCATEGORIES; c++)
		set_MiB(row, category_names[c], "_derived", a.category[c]);
	// measure a forward pass, then a step
	for (int i = 0; i < 2; i++) {
		device_reset_peak(d);
		timed_step(t.m, NULL, &t.batch, MODE_FORWARD);
	}
	set_MiB(row, "forward", "", d->total_peak - d->active[MEM_TEMPORARY]);
	model_clear(t.m);
	t.adamw = adamw_new(t.m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	timed_step(t.m, &t.adamw, &t.batch, MODE_TRAIN);
	size_t workspace = d->active[MEM_TEMPORARY];
	device_reset_peak(d);
	timed_step(t.m, &t.adamw, &t.batch, MODE_TRAIN);
	set_MiB(row, "peak", "", d->total_peak - workspace);
	set_MiB(row, "workspace", "", workspace);
	for (int c = 0; c < NCATEGORIES; c++)
		set_MiB(row, category_names[c], "", d->peak[c]
			- (c == MEM_TEMPORARY ? workspace : 0));
}

// name the keys of the memory's profile
static const Key keys[] = { MODEL_KEYS, { 0 } },
	mode_keys[] = { MODEL_KEYS, KEY(MemoryConfig, mode,
		CHOICES(MEMORY_MODES_OF)), { 0 } },
	layers_keys[] = { MODEL_KEYS, KEY(MemoryConfig, layers), { 0 } };

const Experiment experiment = {
	.about = "memory in use, by phase, by moment and by tensor",
	.options = options, .cpu_scale = SCALED, .sweeps = SWEEPS(
		{ "peaks", mode_keys, plan, run_peaks, .dry = run_peaks },
		{ "timeline", mode_keys, plan_shown, run_timeline },
		{ "tensors", mode_keys, plan_shown, run_tensors,
			.dry = run_tensors },
		{ "saved", keys, plan_blocks, run_saved, .dry = run_saved },
		{ "blocks", layers_keys, plan_depths, run_blocks,
			.dry = run_blocks },
		{ "estimate", keys, plan_sizes, run_estimate,
			.dry = run_estimate }),
};
