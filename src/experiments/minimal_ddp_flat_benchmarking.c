/* minimal_ddp_flat_benchmarking: gradients summed one at a time, or together */
#include "experiments/ddp_case.h"

static DdpGiven given = DDP_GIVEN;
static const Option options[] = { DDP_OPTIONS(given), { 0 } };

static void plan(Plan *plan)
{
	ddp_given_settle(&given);
	ddp_plan_kinds(plan, &given, DDP_FLAT + 1);
}

const Experiment experiment = {
	.about = "times steps that sum gradients one after another, or all at once",
	.options = options, .cpu_scale = SCALED,
	.sweeps = (const Sweep[]){ DDP_SWEEP("kinds", plan), { 0 } },
};
