#include "experiments/bounds.h"

static double most(const Setting *s, Pass pass)
{
	return 1 + (pass == BACKWARD ? 3 : 1.5) * s->F * s->W / s->C;
}

int main(int argc, char **argv)
{
	const Bounds bounds = {
		.name = "tp_calcs", .axis = AXIS_Y, .sharded = false,
		.about = "how many devices tensor parallelism keeps busy",
		.passes = "forward backward", .most = most,
	};
	return bounds_main(&bounds, argc, argv);
}
