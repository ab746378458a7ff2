/* flame_graph: a forward pass as a tree of ranges and kernels */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/training.h"
#include "profile/profile.h"

// read the options of the flame graph
static int size = SIZE_XL, precision, fusion = -1;
static long context = 512, batch = 4, warmup = 2;
static const Option options[] = {
	SIZE_OPTION(&size), CONTEXT_OPTION(&context), BATCH_OPTION(&batch),
	PRECISION_OPTION(&precision), FUSION_OPTION(&fusion),
	WARMUP_OPTION_IN(&warmup, "0..1000", "passes before the profile"),
	{ 0 }
};

static void plan(Plan *plan)
{
	for (int f = 0; f < 2; f++)
		if (fusion < 0 || f == fusion)
			plan_add(plan, &(ModelConfig){ .size = size,
				harness_on_gpu() ? context : (context + SCALE - 1) / SCALE,
				precision, f });
}

// grow the tree of a profile
enum { BOXES = 1024 };

typedef struct FlameBox {
	const char *name;
	int under;                      /* the box below, or -1 */
	double us;                      /* including all boxes above it */
	int calls;
} FlameBox;

typedef struct FlameTree {
	FlameBox boxes[BOXES];               /* a box comes after the one below it */
	int n;
} FlameTree;

static int box_on(FlameTree *t, int under, const char *name)
{
	for (int b = 0; b < t->n; b++)
		if (t->boxes[b].under == under && strcmp(t->boxes[b].name, name) == 0)
			return b;
	if (t->n == BOXES)
		die("a profile has more than %d different stacks", BOXES);
	t->boxes[t->n] = (FlameBox){ .name = name, .under = under };
	return t->n++;
}

static int box_of_range(FlameTree *t, const Profile *p, int range)
{
	if (range < 0)
		return -1;
	int under = box_of_range(t, p, p->ranges[range].parent);
	return box_on(t, under, p->ranges[range].name);
}

// add the time of kernels to their stacks
static void add_time(FlameTree *t, int box, double us)
{
	for (; box >= 0; box = t->boxes[box].under)
		t->boxes[box].us += us;
}

static void grow_tree(FlameTree *t, const Profile *p)
{
	for (int s = 0; s < p->nranges; s++) {
		FlameBox *box = &t->boxes[box_of_range(t, p, s)];
		box->calls++;
		if (!p->sees_activities)
			box->us += p->ranges[s].device_us;
	}
	double last = 0;                    /* time up to here is taken */
	for (size_t i = 0; i < p->nactivities; i++) {
		const Activity *w = &p->activities[i];
		int box = box_on(t, box_of_range(t, p, w->range), w->name);
		t->boxes[box].calls++;
		double from = w->start_us > last ? w->start_us : last;
		if (w->end_us > from) {
			add_time(t, box, w->end_us - from);
			last = w->end_us;
		}
	}
}

// profile a forward pass
static Profile *profile_pass(const ModelConfig *c)
{
	Training training = training_of(c, batch, false);
	Model *m = training.m;
	for (long i = 0; i < warmup; i++)
		timed_step(m, NULL, &training.batch, MODE_FORWARD);
	Profile *p = profile_start(m->device, true);
	timed_step(m, NULL, &training.batch, MODE_FORWARD);
	profile_stop(p);
	training_free(&training);
	if (p->lost)
		die("the pass has more events than a profile holds");
	return p;
}

// give a row for each box
static void write_stack(char *text, size_t n, const FlameTree *t, int box)
{
	size_t length = 0;
	if (t->boxes[box].under >= 0) {
		write_stack(text, n, t, t->boxes[box].under);
		length = strlen(text);
	}
	snprintf(text + length, n - length, "%s%s", length ? ";" : "",
		t->boxes[box].name);
}

// emit boxes from the bottom up
/* emits the boxes on `under`, from start_us on, the widest first */
static void emit(Row *row, const FlameTree *t, int under, int depth,
	double start_us, double all_us)
{
	bool done[BOXES] = { false };
	for (;;) {
		int widest = -1;
		for (int b = 0; b < t->n; b++)
			if (t->boxes[b].under == under && !done[b]
				&& (widest < 0 || t->boxes[b].us > t->boxes[widest].us))
				widest = b;
		if (widest < 0)
			return;
		const FlameBox *b = &t->boxes[widest];
		char stack[512];
		write_stack(stack, sizeof stack, t, widest);
		row_set(row, "box", "%s", b->name);
		row_set(row, "depth", "%d", depth);
		row_set(row, "start_ms", "%.4f", start_us * 1e-3);
		row_set(row, "width_ms", "%.4f", b->us * 1e-3);
		row_set(row, "fraction", "%.5f", b->us / all_us);
		row_set(row, "calls", "%d", b->calls);
		row_set(row, "stack", "%s", stack);
		row_emit(row);
		done[widest] = true;
		emit(row, t, widest, depth + 1, start_us, all_us);
		start_us += b->us;
	}
}

// give a row for each box of a pass
static void run(Row *row, const void *config)
{
	Profile *p = profile_pass(config);
	FlameTree *t = need(calloc(1, sizeof *t));
	grow_tree(t, p);
	double all = 0;
	for (int i = 0; i < t->n; i++)
		all += t->boxes[i].under < 0 ? t->boxes[i].us : 0;
	emit(row, t, -1, 0, 0, all);
	free(t);
	profile_free(&p);
}

// give a row for each range in order
static void run_timeline(Row *row, const void *config)
{
	Profile *p = profile_pass(config);
	double zero = 0, start, end;
	for (int s = 0; s < p->nranges; s++) {
		profile_interval(p, s, &start, &end);
		zero = s == 0 ? start : zero;
		row_set(row, "depth", "%d", profile_depth(p, s));
		row_set(row, "range", "%s", p->ranges[s].name);
		row_set(row, "start_ms", "%.4f", (start - zero) * 1e-3);
		row_set(row, "end_ms", "%.4f", (end - zero) * 1e-3);
		row_emit(row);
	}
	profile_free(&p);
}

static const Key keys[] = { MODEL_KEYS, { 0 } };

const Experiment experiment = {
	.about = "a forward pass as a tree of ranges and kernels", .options = options,
	.cpu_scale = SCALED,
	.sweeps = SWEEPS(
		{ "boxes", keys, plan, run },
		{ "timeline", keys, plan, run_timeline }),
};
