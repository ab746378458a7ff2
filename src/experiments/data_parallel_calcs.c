#include "experiments/bounds.h"

static Ffn layout(const Setting *s, size_t N)
{
	return (Ffn){ s->B, s->D, s->F, .gated = true, .X = N, .Y = 1 };
}

static void plan_bounds(Plan *plan)
{
	bounds_plan(plan, "backward");
}

static void run_bound(Row *row)
{
	const Setting s = bounds_setting(row);
	bound_row(row, layout, BACKWARD, 1 + s.B * s.W / s.C);
}

static void plan_curve(Plan *plan)
{
	curve_plan(plan, "backward");
}

static void run_curve(Row *row)
{
	curve_row(row, layout);
}

static void plan_schedules(Plan *plan)
{
	schedule_plan(plan, "1x1 2x1 3x1 4x1 5x1 10x1");
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
		.name = "data_parallel_calcs", .options = bounds_options,
		.about = "how many devices data parallelism keeps busy",
		.sweeps = sweeps, .scale = cluster_scale, .cpu_only = true,
	};
	return harness_main(&experiment, argc, argv);
}
