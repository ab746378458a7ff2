#include "cases/one_axis.h"

static double most(const BoundSetting *s, FfnPass pass)
{
	return 1 + (pass == BACKWARD ? 3 : 1.5) * s->F * s->W / s->C;
}

const OneAxis one_axis = {
	.axis = AXIS_Y, .sharded = false, .forward = true, .most = most,
};

const Experiment experiment = ONE_AXIS_EXPERIMENT("tensor parallelism");
