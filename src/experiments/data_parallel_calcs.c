#include "cases/one_axis.h"

static double most(const BoundSetting *s, FfnPass pass)
{
	return 1 + s->B * s->W / s->C;
}

const OneAxis one_axis = {
	.axis = AXIS_X, .sharded = false, .forward = false, .most = most,
};

const Experiment experiment = ONE_AXIS_EXPERIMENT("data parallelism");
