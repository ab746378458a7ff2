#include "experiments/one_axis.h"

static double most(const Setting *s, Pass pass)
{
	(void)pass;
	return 1 + s->B * s->W / s->C;
}

const OneAxis one_axis = {
	.axis = AXIS_X, .sharded = false, .forward = false, .most = most,
};

const Experiment experiment = {
	.name = "data_parallel_calcs", .options = bounds_options,
	.about = "how many devices data parallelism keeps busy",
	.sweeps = one_axis_sweeps, .cpu_scale = CLUSTER_SCALE, .cpu_only = true,
};
