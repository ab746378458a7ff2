#include "experiments/bounds.h"

static double most(const Setting *s, Pass pass)
{
	(void)pass;
	return 1 + s->B * s->W / s->C;
}

int main(int argc, char **argv)
{
	const Bounds bounds = {
		.name = "fsdp_calcs", .axis = AXIS_X, .sharded = true,
		.about = "how many devices FSDP keeps busy",
		.passes = "forward backward", .most = most,
	};
	return bounds_main(&bounds, argc, argv);
}
