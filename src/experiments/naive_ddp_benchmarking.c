/* naive_ddp_benchmarking: a step whose gradients are summed one after another */
#include "cases/ddp_plan.h"
#include "cases/ddp_steps.h"

static DdpGiven given = DDP_GIVEN;
static const Option options[] = { DDP_OPTIONS(given), { 0 } };

static void plan(Plan *plan)
{
	ddp_given_settle(&given);
	for (int p = 0; p < (harness_on_gpu() && given.precision < 0 ? 2 : 1); p++)
		for (int s = 0; s < NSIZES; s++)
			if (given.size == s || s < NTRAINED)
				ddp_plan(plan, &given, (DdpConfig){ { s, .precision = p
					? POLICY_BF16 : given.precision < 0 ? POLICY_FP32
					: given.precision }, .kind = DDP_NAIVE,
					.wire = ddp_wire(&given) });
}

const Experiment experiment = {
	.about = "times training steps that sum each parameter's gradient by itself",
	.options = options, .cpu_scale = SCALED,
	.sweeps = SWEEPS(DDP_SWEEP("sizes", plan)),
};
