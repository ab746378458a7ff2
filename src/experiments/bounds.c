#include "experiments/bounds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* data sheets: dense bf16 FLOP/s; bytes/s that one device sends */
static const struct Hardware {
	const char *name;
	double TFLOPs, GBps;
} machines[] = {
	{ "H100 NVLink", 989, 450 },    /* 18 links of 25 GB/s each way */
	{ "H100 NIC", 989, 50 },        /* one port of 400 Gbit/s for each GPU */
	{ "B200 NVLink", 2250, 900 },
	{ "TPU v5p", 460, 180 },        /* one axis of the torus, both ways */
};
enum { MACHINES = sizeof machines / sizeof *machines, MOST_TRIED = 10000000 };

static double TFLOPs = 0, GBps = 0;         /* 0: all machines */
static long batch = 1 << 20, d_model = 2560, d_ff = 10240;

const Option bounds_options[] = {
	{ "TFLOPs", OPT_REAL, &TFLOPs, "RATE",
		"of one device, with --GBps: this machine alone" },
	{ "GBps", OPT_REAL, &GBps, "RATE", "egress bandwidth of one device" },
	{ "batch", OPT_INT, &batch, "1..1099511627776", "rows (tokens) in all" },
	{ "d-model", OPT_INT, &d_model, "1..1048576", "width of the model" },
	{ "d-ff", OPT_INT, &d_ff, "1..1048576", "width of the layer" },
	{ 0 }
};

static bool in_range(double rate)
{
	return rate >= 1e-6 && rate <= 1e9;
}
/* for each machine and word of `cases`, rows of N = 1, 2, 4 ... most; 0: one */
static void plan_rows(Plan *plan, const char *cases, size_t most)
{
	bool custom = TFLOPs != 0 || GBps != 0;
	if (custom && !(in_range(TFLOPs) && in_range(GBps)))
		usage_error("a machine needs both --TFLOPs and --GBps, 1e-6 to 1e9");
	for (int i = 0; i < (custom ? 1 : MACHINES); i++) {
		double x = (custom ? GBps / TFLOPs
			: machines[i].GBps / machines[i].TFLOPs) * 1e-3;
		if ((1 + batch * x) * (1 + 3 * d_ff * x) > MOST_TRIED)
			usage_error("this machine and layer have bounds of up to %.3g "
				"devices: too many to try", (1 + batch * x)
				* (1 + 3 * d_ff * x));
		for (const char *c = cases; *c; c += strcspn(c, " "), c += *c == ' ') {
			const char *name = custom ? "custom" : machines[i].name;
			int length = (int)strcspn(c, " ");
			if (most == 0)
				plan_add(plan, "%s\t%.*s", name, length, c);
			for (size_t N = 1; N <= most; N *= 2)
				plan_add(plan, "%s\t%.*s\t%zu", name, length, c, N);
		}
	}
}

void bounds_plan(Plan *plan, const char *cases)
{
	plan_rows(plan, cases, 0);
}


Setting bounds_setting(Row *row)
{
	double tera = TFLOPs, giga = GBps;
	for (int i = 0; i < MACHINES; i++)
		if (strcmp(row_text(row, "hardware"), machines[i].name) == 0) {
			tera = machines[i].TFLOPs;
			giga = machines[i].GBps;
		}
	row_set(row, "TFLOPs", "%g", tera);
	row_set(row, "GBps", "%g", giga);
	row_set(row, "batch", "%ld", batch);
	row_set(row, "d_model", "%ld", d_model);
	row_set(row, "d_ff", "%ld", d_ff);
	return (Setting){ tera * 1e12, giga * 1e9, batch, d_model, d_ff };
}
double compute_time(const Setting *s, Cost cost)
{
	return cost.flops / s->C;
}

double send_time(const Setting *s, Cost cost, bool overlapped)
{
	double x = cost.nbytes[AXIS_X] / s->W, y = cost.nbytes[AXIS_Y] / s->W;
	return overlapped ? fmax(x, y) : x + y;
}

bool compute_bound(const Setting *s, Cost cost, bool overlapped)
{
	/* equal times count as compute-bound, whatever their last bits */
	return send_time(s, cost, overlapped) <= compute_time(s, cost)*(1 + 1e-12);
}
static const Bounds *problem;

static Ffn layout(const Setting *s, size_t N)
{
	bool x = problem->axis == AXIS_X;
	return (Ffn){ s->B, s->D, s->F, .gated = true, .X = x ? N : 1,
		.Y = x ? 1 : N, .sharded = problem->sharded };
}

static Pass pass_of(const Row *row)
{
	return strcmp(row_text(row, "pass"), "backward") == 0 ? BACKWARD : FORWARD;
}
/* the largest N that is compute-bound; dies unless all smaller ones are, and
 * none of the others up to twice the bound */
static size_t scan(const Setting *s, Pass pass, double bound)
{
	size_t largest = 0, end = (size_t)(2 * bound) + 8;
	for (size_t N = 1; N <= end; N++) {
		const Ffn f = layout(s, N);
		if (!compute_bound(s, ffn_cost(&f, pass), true))
			continue;
		if (N != largest + 1)
			die("%zu devices are compute-bound, %zu are not", N, N - 1);
		largest = N;
	}
	return largest;
}
enum { MOST_COUNTED = 4096 };       /* devices: steps grow as their square */

static void count_schedule(Row *row, const Setting *s, Ffn f, Pass pass,
	const char *compute, const char *send)
{
	if (f.X * f.Y > MOST_COUNTED)
		return;
	Cost cost[PASSES];
	ffn_count(&f, cost);
	row_set(row, compute, "%.6g", compute_time(s, cost[pass]) * 1e3);
	row_set(row, send, "%.6g", send_time(s, cost[pass], true) * 1e3);
}

static void plan_bounds(Plan *plan)
{
	bounds_plan(plan, problem->passes);
}

static void run_bound(Row *row)
{
	const Setting s = bounds_setting(row);
	Pass pass = pass_of(row);
	double bound = problem->most(&s, pass);
	size_t N = scan(&s, pass, bound);
	if (N != (size_t)(bound * (1 + 1e-12)))
		die("tried in turn, %zu devices are the most, not %g", N, bound);
	row_set(row, "bound", "%.6g", bound);
	row_set(row, "N", "%zu", N);
	count_schedule(row, &s, layout(&s, N), pass, "compute_ms", "send_ms");
	count_schedule(row, &s, layout(&s, N + 1), pass, "next_compute_ms",
		"next_send_ms");
}
static void plan_curve(Plan *plan)
{
	plan_rows(plan, problem->passes, 4096);
}

static void run_curve(Row *row)
{
	const Setting s = bounds_setting(row);
	const Ffn f = layout(&s, (size_t)row_int(row, "N"));
	Cost cost = ffn_cost(&f, pass_of(row));
	row_set(row, "compute_ms", "%.6g", compute_time(&s, cost) * 1e3);
	row_set(row, "send_ms", "%.6g", send_time(&s, cost, true) * 1e3);
}
/* shapes that every mesh here divides, and some that it does not */
static const long shapes[][3] = { { 120, 60, 120 }, { 7, 10, 13 } };
static const char *const pass_names[PASSES] = { "forward", "backward" };

void schedule_plan(Plan *plan, const char *meshes)
{
	for (int s = 0; s < 2; s++)
		for (const char *m = meshes; *m; m += strcspn(m, " "), m += *m == ' ')
			for (int pass = 0; pass < PASSES; pass++) {
				long X, Y;
				if (sscanf(m, "%ldx%ld", &X, &Y) != 2)
					die("'%s' does not begin with a mesh, as 2x4", m);
				plan_add(plan, "%ld\t%ld\t%ld\t%ld\t%ld\t%s", X, Y,
					shapes[s][0], shapes[s][1], shapes[s][2],
					pass_names[pass]);
			}
}

void schedule_row(Row *row, bool sharded)
{
	Cost counted[PASSES];
	const Ffn f = { .B = row_int(row, "batch"), .D = row_int(row, "d_model"),
		.F = row_int(row, "d_ff"), .gated = true, .X = row_int(row, "X"),
		.Y = row_int(row, "Y"), .sharded = sharded };
	Pass pass = pass_of(row);
	ffn_run(&f, counted);
	Cost formula = ffn_cost(&f, pass), count = counted[pass];
	bool divides = f.B % f.X == 0 && f.D % f.X == 0 && f.F % f.Y == 0
		&& f.B / f.X * f.D % f.Y == 0;
	if (divides && (fabs(formula.flops - count.flops) > 0.5
		|| fabs(formula.nbytes[AXIS_X] - count.nbytes[AXIS_X]) > 0.5
		|| fabs(formula.nbytes[AXIS_Y] - count.nbytes[AXIS_Y]) > 0.5))
		die("%g FLOPs were counted, not %g; %g and %g bytes, not %g and %g",
			count.flops, formula.flops, count.nbytes[AXIS_X],
			count.nbytes[AXIS_Y], formula.nbytes[AXIS_X],
			formula.nbytes[AXIS_Y]);
	row_set(row, "flops", "%.10g", formula.flops);
	row_set(row, "flops_counted", "%.10g", count.flops);
	row_set(row, "x_nbytes", "%.10g", formula.nbytes[AXIS_X]);
	row_set(row, "x_counted", "%.10g", count.nbytes[AXIS_X]);
	row_set(row, "y_nbytes", "%.10g", formula.nbytes[AXIS_Y]);
	row_set(row, "y_counted", "%.10g", count.nbytes[AXIS_Y]);
}
static void plan_schedules(Plan *plan)
{
	schedule_plan(plan, problem->axis == AXIS_X ? "1x1 2x1 3x1 4x1 5x1 10x1"
		: "1x1 1x2 1x3 1x4 1x5 1x10");
}

static void run_schedule(Row *row)
{
	schedule_row(row, problem->sharded);
}

int bounds_main(const Bounds *bounds, int argc, char **argv)
{
	const Sweep sweeps[] = {
		{ "bounds", "hardware pass", SETTING_VALUES " bound N compute_ms "
			"send_ms next_compute_ms next_send_ms", plan_bounds, run_bound },
		{ "curve", "hardware pass N", SETTING_VALUES " compute_ms send_ms",
			plan_curve, run_curve },
		{ "schedule", SCHEDULE_KEYS, SCHEDULE_VALUES, plan_schedules,
			run_schedule },
		{ 0 }
	};
	const Experiment experiment = {
		.name = bounds->name, .about = bounds->about,
		.options = bounds_options, .sweeps = sweeps, .scale = cluster_scale,
		.cpu_only = true,
	};
	problem = bounds;
	return harness_main(&experiment, argc, argv);
}
