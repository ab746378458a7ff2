/* minimal_ddp_flat_benchmarking: gradients summed one at a time, or together */
#include "experiments/ddp_case.h"

static DdpGiven given = DDP_GIVEN;
static const Option options[] = { DDP_OPTIONS(given), { 0 } };
static const Key keys[] = { DDP_KEYS, { 0 } };

static void plan(Plan *plan)
{
	ddp_given_settle(&given);
	ddp_plan_kinds(plan, &given, DDP_FLAT + 1);
}

static void run(Row *row, const void *config)
{
	ddp_case_row(row, config, &given);
}

const Experiment experiment = {
	.name = "minimal_ddp_flat_benchmarking",
	.about = "times steps that sum gradients one after another, or all at once",
	.options = options, .cpu_scale = SCALED,
	.sweeps = (const Sweep[]){
		{ "kinds", keys, DDP_VALUES, plan, run, .ranks = ddp_config_ranks },
		{ 0 }
	},
};
