#include "cases/one_axis.h"

#include "base/error.h"

// split a layer over one axis
static Ffn layout(const BoundSetting *s, size_t N)
{
	bool x = one_axis.axis == AXIS_X;
	return (Ffn){ s->B, s->D, s->F, .gated = true, .X = x ? N : 1,
		.Y = x ? 1 : N, .sharded = one_axis.sharded };
}

typedef struct OneAxisConfig {
	Hardware machine;
	FfnPass pass;
	long N;
} OneAxisConfig;

// try every number of devices
/* returns the largest N that is compute-bound; ends the program unless all
 * smaller ones are too, and none of the others up to twice the bound */
static size_t scan(const BoundSetting *s, FfnPass pass, double bound)
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

// count at the bound
enum { MOST_COUNTED = 4096 };       /* devices: sends grow as their square */

static void count_schedule(Row *row, const BoundSetting *s, Ffn f, FfnPass pass,
	const char *compute, const char *send)
{
	FfnCost cost[PASSES] = { 0 };
	bool counted = f.X * f.Y <= MOST_COUNTED;
	if (counted)
		ffn_count(&f, cost);
	row_set(row, compute, counted ? "%.6g" : "-",
		compute_time(s, cost[pass]) * 1e3);
	row_set(row, send, counted ? "%.6g" : "-",
		send_time(s, cost[pass], true) * 1e3);
}

// find the bound of each machine and pass
static const Key bound_keys[] = { KEY(Hardware, hardware),
	KEY(OneAxisConfig, pass, FFN_PASSES), { 0 } };

static void plan_bounds(Plan *plan)
{
	Hardware machines[MACHINES];
	for (int i = 0, n = bounds_machines(machines); i < n; i++)
		for (FfnPass p = one_axis.forward ? FORWARD : BACKWARD; p < PASSES; p++)
			plan_add(plan, &(OneAxisConfig){ machines[i], p, 0 });
}

static void run_bound(Row *row, const void *config)
{
	const OneAxisConfig *c = config;
	const BoundSetting s = bounds_setting(row, &c->machine);
	FfnPass pass = c->pass;
	double bound = one_axis.most(&s, pass);
	size_t N = scan(&s, pass, bound);
	if (N != (size_t)(bound * (1 + 1e-12)))
		die("tried in turn, %zu devices are the most, not %g", N, bound);
	row_set(row, "bound", "%.6g", bound);
	row_set(row, "N", "%zu", N);
	count_schedule(row, &s, layout(&s, N), pass, "compute_ms", "send_ms");
	count_schedule(row, &s, layout(&s, N + 1), pass, "next_compute_ms",
		"next_send_ms");
}

// find times against devices
static const Key curve_keys[] = { KEY(Hardware, hardware),
	KEY(OneAxisConfig, pass, FFN_PASSES), KEY(OneAxisConfig, N), { 0 } };

static void plan_curve(Plan *plan)
{
	Hardware machines[MACHINES];
	for (int i = 0, n = bounds_machines(machines); i < n; i++)
		for (FfnPass p = one_axis.forward ? FORWARD : BACKWARD; p < PASSES; p++)
			for (long N = 1; N <= 4096; N *= 2)
				plan_add(plan, &(OneAxisConfig){ machines[i], p, N });
}

static void run_curve(Row *row, const void *config)
{
	const OneAxisConfig *c = config;
	const BoundSetting s = bounds_setting(row, &c->machine);
	const Ffn f = layout(&s, (size_t)c->N);
	FfnCost cost = ffn_cost(&f, c->pass);
	row_set(row, "compute_ms", "%.6g", compute_time(&s, cost) * 1e3);
	row_set(row, "send_ms", "%.6g", send_time(&s, cost, true) * 1e3);
}

// describe the problem of one axis to the harness
static void plan_schedules(Plan *plan)
{
	static const long lengths[] = { 1, 2, 3, 4, 5, 10 };
	enum { N = sizeof lengths / sizeof *lengths };
	long meshes[N][2];
	for (int i = 0; i < N; i++)
		for (int axis = 0; axis < AXES; axis++)
			meshes[i][axis] = axis == (int)one_axis.axis ? lengths[i] : 1;
	schedule_plan(plan, meshes, N);
}

static void run_schedule(Row *row, const void *config)
{
	schedule_row(row, config, one_axis.sharded);
}

// name the sweeps of one axis
const Sweep one_axis_sweeps[] = {
	{ "bounds", bound_keys, plan_bounds, run_bound },
	{ "curve", curve_keys, plan_curve, run_curve },
	{ "schedule", schedule_keys, plan_schedules, run_schedule },
	{ 0 }
};
