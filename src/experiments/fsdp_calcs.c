#include "experiments/one_axis.h"

static double most(const Setting *s, Pass pass)
{
	(void)pass;
	return 1 + s->B * s->W / s->C;
}

const OneAxis one_axis = {
	.axis = AXIS_X, .sharded = true, .forward = true, .most = most,
};

const Experiment experiment = {
	.name = "fsdp_calcs", .options = bounds_options,
	.about = "how many devices FSDP keeps busy",
	.sweeps = one_axis_sweeps, .cpu_scale = CLUSTER_SCALE, .cpu_only = true,
};
