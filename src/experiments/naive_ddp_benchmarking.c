/* naive_ddp_benchmarking: a step whose gradients are summed one after another */
#include "experiments/ddp_case.h"

static DdpGiven given = DDP_GIVEN;
static const Option options[] = { DDP_OPTIONS(given), { 0 } };
static const Key keys[] = { DDP_KEYS, { 0 } };

static void plan(Plan *plan)
{
	ddp_given_settle(&given);
	for (int p = 0; p < (harness_on_gpu() && given.precision < 0 ? 2 : 1); p++)
		for (int s = 0; s < NSIZES; s++)
			if (given.size == s || s < NTRAINED)
				ddp_plan(plan, &given, (DdpConfig){ { s, .precision = p
					? POLICY_BF16 : given.precision < 0 ? POLICY_FP32
					: given.precision }, .kind = DDP_NAIVE,
					.wire = given.wire > 0 });
}

static void run(Row *row, const void *config)
{
	ddp_case_row(row, config, &given);
}

const Experiment experiment = {
	.name = "naive_ddp_benchmarking",
	.about = "times training steps that sum each parameter's gradient by itself",
	.options = options, .cpu_scale = SCALED,
	.sweeps = (const Sweep[]){
		{ "sizes", keys, DDP_VALUES, plan, run, .ranks = ddp_config_ranks },
		{ 0 }
	},
};
