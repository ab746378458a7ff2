#include "experiments/bounds.h"

static double most(const Setting *s, Pass pass)
{
	(void)pass;
	return 1 + s->B * s->W / s->C;
}

int main(int argc, char **argv)
{
	const Bounds bounds = {
		.name = "data_parallel_calcs", .axis = AXIS_X, .sharded = false,
		.about = "how many devices data parallelism keeps busy",
		.passes = "backward", .most = most,
	};
	return bounds_main(&bounds, argc, argv);
}
