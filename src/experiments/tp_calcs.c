#include "experiments/one_axis.h"

static double most(const Setting *s, Pass pass)
{
	return 1 + (pass == BACKWARD ? 3 : 1.5) * s->F * s->W / s->C;
}

const OneAxis one_axis = {
	.axis = AXIS_Y, .sharded = false, .forward = true, .most = most,
};

const Experiment experiment = {
	.name = "tp_calcs", .options = bounds_options,
	.about = "how many devices tensor parallelism keeps busy",
	.sweeps = one_axis_sweeps, .cpu_scale = CLUSTER_SCALE, .cpu_only = true,
};
