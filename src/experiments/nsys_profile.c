/* nsys_profile: what a training step runs, by range and by kernel */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "experiments/harness.h"
#include "experiments/step.h"
#include "profile/profile.h"
#include "profile/snapshot.h"
#include "profile/trace.h"

static int size = -1, precision, fusion = -1;
static long context, batch = 4, warmup = 2;
static const char *trace, *folded, *snapshot;
static const Option options[] = {
	{ "size", OPT_CHOICE, &size, SIZES, "this model only" },
	{ "context", OPT_INT, &context, "1..65536", "this context only" },
	{ "batch", OPT_INT, &batch, "1..4096", "sequences in a batch" },
	{ "precision", OPT_CHOICE, &precision, PRECISIONS, "number formats" },
	{ "fusion", OPT_CHOICE, &fusion, FUSIONS, "this path only" },
	{ "warmup", OPT_INT, &warmup, "0..1000", "steps before the profile" },
	{ "trace", OPT_TEXT, &trace, "FILE", "the last step for ui.perfetto.dev" },
	{ "folded", OPT_TEXT, &folded, "FILE", "the last step as folded stacks" },
	{ "snapshot", OPT_TEXT, &snapshot, "FILE", "its memory, as PyTorch's" },
	{ 0 }
};

static void plan(Plan *plan)
{
	static const long contexts[] = { 128, 256, 512, 1024 };
	for (int f = 0; f < 2; f++)
		for (int s = 0; s < NSIZES; s++)
			for (int c = 0; c < 4; c++) {
				long T = harness_on_gpu() ? contexts[c] : contexts[c] / SCALE;
				if ((size >= 0 && s != size) || (fusion >= 0 && f != fusion)
					|| (context && c > 0))
					continue;
				plan_add(plan, "%s\t%ld\t%s\t%s", model_sizes[s].name,
					context ? context : T, policies[precision].name,
					fusion_names[f]);
			}
}
typedef struct Profiled {
	Profile *profile;
	StepTime plain;                /* of a step without the profile */
} Profiled;

static void export(const Profile *p)
{
	if (trace)
		trace_write(p, 0, trace);
	if (snapshot)
		snapshot_write(p->device, snapshot);
	if (folded == NULL)
		return;
	FILE *f = fopen(folded, "w");
	if (f == NULL)
		usage_error("cannot write %s: %s", folded, strerror(errno));
	folded_write(p, f);
	if (fclose(f) != 0)
		usage_error("cannot write %s: %s", folded, strerror(errno));
}

static Profiled profile_step(const Row *row)
{
	Shape shape = row_shape(row);
	Device *d = harness_device();
	Model *m = model_new(d, &shape, policy_find(row_text(row, "precision")),
		harness_seed);
	if (strcmp(row_text(row, "fusion"), "fused") == 0)
		model_fuse(m);
	AdamW adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(batch, shape.context, shape.vocab, harness_seed);
	Profiled p = { 0 };
	for (long i = 0; i <= warmup; i++)
		p.plain = timed_step(m, &adamw, &b, MODE_TRAIN);
	device_record(d, trace || snapshot);
	p.profile = profile_start(d);
	timed_step(m, &adamw, &b, MODE_TRAIN);
	profile_stop(p.profile);
	export(p.profile);
	batch_free(&b);
	adamw_free(&adamw, m);
	model_free(&m);
	return p;
}
typedef struct Sum {
	int works, kernels;
	double busy_us, span_us, product_us;
} Sum;

static bool is_product(const char *kernel)
{
	static const char *const parts[] = { "gemm", "nvjet", "cutlass", "splitK",
		"multiply_any" };
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strstr(kernel, parts[i]))
			return true;
	return false;
}

/* is work i in a span of that name, and in one of the other? */
static bool lies_in(const Profile *p, size_t i, const char *name,
	const char *phase)
{
	int span = p->works[i].span;
	return profile_within(p, span, name) && profile_within(p, span, phase);
}

static Sum sum_works(const Profile *p, const char *name, const char *phase)
{
	Sum sum = { 0 };
	double first = 0, last = 0;
	for (size_t i = 0; i < p->nworks; i++) {
		const Work *w = &p->works[i];
		if (!lies_in(p, i, name, phase))
			continue;
		if (sum.works++ == 0)
			first = last = w->start_us;
		sum.kernels += w->kind == WORK_KERNEL;
		double from = w->start_us > last ? w->start_us : last;
		if (w->end_us > from) {
			sum.busy_us += w->end_us - from;
			last = w->end_us;
		}
		if (w->kind == WORK_KERNEL && is_product(w->name))
			sum.product_us += w->end_us - w->start_us;
	}
	sum.span_us = last - first;
	return sum;
}

/* where works are not seen: the host's time inside the range */
static double host_us(const Profile *p, const char *name, const char *phase)
{
	double us = 0;
	for (int s = 0; s < p->nspans; s++)
		if (strcmp(p->spans[s].name, name) == 0 && profile_within(p, s, phase))
			us += p->spans[s].end_us - p->spans[s].start_us;
	return us;
}
static const struct { const char *label, *name, *phase; } ranges[] = {
	{ "forward", "forward", "forward" },
	{ "backward", "backward", "backward" },
	{ "optimizer", "optimizer", "optimizer" },
	{ "forward norm", "norm", "forward" },
	{ "forward attention", "attention", "forward" },
	{ "forward scores", "scores", "forward" },
	{ "forward softmax", "softmax", "forward" },
	{ "forward values", "values", "forward" },
	{ "backward attention", "attention", "backward" },
};
enum { NRANGES = sizeof ranges / sizeof *ranges, NPHASES = 3 };

static void run_ranges(Row *row)
{
	Profiled p = profile_step(row);
	const double events[NPHASES] = { p.plain.fwd_ms, p.plain.bwd_ms,
		p.plain.opt_ms };
	for (int r = 0; r < NRANGES; r++) {
		Sum s = sum_works(p.profile, ranges[r].name, ranges[r].phase);
		row_set(row, "range", "%s", ranges[r].label);
		row_set(row, "works", "%d", s.works);
		row_set(row, "kernels", "%d", s.kernels);
		if (!p.profile->sees_work)
			s.busy_us = s.span_us = host_us(p.profile, ranges[r].name,
				ranges[r].phase);
		row_set(row, "busy_ms", "%.4f", s.busy_us * 1e-3);
		row_set(row, "span_ms", "%.4f", s.span_us * 1e-3);
		row_set(row, "busy_share", "%.4f", s.span_us > 0
			? s.busy_us / s.span_us : 0);
		row_set(row, "product_ms", "%.4f", s.product_us * 1e-3);
		row_set(row, "event_ms", "%.4f", r < NPHASES ? events[r] : 0);
		row_emit(row);
	}
	profile_free(&p.profile);
}
typedef struct Total {
	const char *name;
	int calls;
	double us, least, most;
} Total;

static int by_time(const void *a, const void *b)
{
	double x = ((const Total *)a)->us, y = ((const Total *)b)->us;
	return x < y ? 1 : x > y ? -1 : 0;
}

/* totals[nworks]; returns how many */
static int total_by_name(const Profile *p, const char *phase, Total *totals)
{
	int n = 0;
	for (size_t i = 0; i < p->nworks; i++) {
		if (!lies_in(p, i, phase, phase))
			continue;
		int t = 0;
		while (t < n && totals[t].name != p->works[i].name)
			t++;
		double us = p->works[i].end_us - p->works[i].start_us;
		if (t == n)
			totals[n++] = (Total){ p->works[i].name, 0, 0, us, us };
		totals[t].calls++;
		totals[t].us += us;
		totals[t].least = us < totals[t].least ? us : totals[t].least;
		totals[t].most = us > totals[t].most ? us : totals[t].most;
	}
	qsort(totals, n, sizeof *totals, by_time);
	return n;
}

static void run_kernels(Row *row)
{
	enum { SHOWN = 12 };
	Profiled p = profile_step(row);
	Total *totals = need(malloc((p.profile->nworks + 1) * sizeof *totals));
	for (int r = 0; r < NPHASES; r++) {
		int n = total_by_name(p.profile, ranges[r].name, totals);
		double all = 0;
		for (int t = 0; t < n; t++)
			all += totals[t].us;
		for (int t = 0; t < n && t < SHOWN; t++) {
			row_set(row, "range", "%s", ranges[r].label);
			row_set(row, "rank", "%d", t + 1);
			row_set(row, "kernel", "%s", totals[t].name);
			row_set(row, "is_product", "%d", is_product(totals[t].name));
			row_set(row, "share", "%.4f", totals[t].us / all);
			row_set(row, "total_ms", "%.4f", totals[t].us * 1e-3);
			row_set(row, "calls", "%d", totals[t].calls);
			row_set(row, "mean_us", "%.3f", totals[t].us / totals[t].calls);
			row_set(row, "min_us", "%.3f", totals[t].least);
			row_set(row, "max_us", "%.3f", totals[t].most);
			row_emit(row);
		}
	}
	free(totals);
	profile_free(&p.profile);
}

static const char *scale(void)
{
	return harness_on_gpu() ? "course" : SCALED;
}

int main(int argc, char **argv)
{
	const Study studies[] = {
		{ "ranges", "size context precision fusion", "range works kernels "
			"busy_ms span_ms busy_share product_ms event_ms", plan, run_ranges },
		{ "kernels", "size context precision fusion", "range rank kernel "
			"is_product share total_ms calls mean_us min_us max_us", plan,
			run_kernels },
		{ 0 }
	};
	const Experiment e = {
		.name = "nsys_profile", .options = options, .studies = studies,
		.about = "kernels of a training step, by range and by name",
		.scale = scale,
	};
	return harness_main(&e, argc, argv);
}
