#include "experiments/bounds.h"

static Ffn layout(const Setting *s, size_t N)
{
	return (Ffn){ s->B, s->D, s->F, .gated = true, .X = 1, .Y = N };
}

static void plan_bounds(Plan *plan)
{
	bounds_plan(plan, "forward backward");
}

static void run_bound(Row *row)
{
	const Setting s = bounds_setting(row);
	Pass pass = bounds_pass(row);
	bound_row(row, layout, pass,
		1 + (pass == BACKWARD ? 3 : 1.5) * s.F * s.W / s.C);
}

static void plan_curve(Plan *plan)
{
	curve_plan(plan, "forward backward");
}

static void run_curve(Row *row)
{
	curve_row(row, layout);
}

static void plan_schedules(Plan *plan)
{
	schedule_plan(plan, "1x1 1x2 1x3 1x4 1x5 1x10");
}

static void run_schedule(Row *row)
{
	schedule_row(row, false);
}

int main(int argc, char **argv)
{
	const Sweep sweeps[] = {
		{ "bounds", "hardware pass", BOUND_VALUES, plan_bounds, run_bound },
		{ "curve", CURVE_KEYS, CURVE_VALUES, plan_curve, run_curve },
		{ "schedule", SCHEDULE_KEYS, SCHEDULE_VALUES, plan_schedules,
			run_schedule },
		{ 0 }
	};
	const Experiment experiment = {
		.name = "tp_calcs", .options = bounds_options,
		.about = "how many devices tensor parallelism keeps busy",
		.sweeps = sweeps, .scale = cluster_scale, .cpu_only = true,
	};
	return harness_main(&experiment, argc, argv);
}
