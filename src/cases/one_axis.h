/* one_axis.h: a layer split over the devices of one axis, and how many it can
 * use: the sweeps of three programs */
#ifndef CASES_ONE_AXIS_H
#define CASES_ONE_AXIS_H

#include "cases/bounds.h"

typedef struct OneAxis {
	Axis axis;
	bool sharded;                   /* as in Ffn */
	bool forward;                   /* the forward pass sends too */
	/* closed form: the most devices on which a pass is compute-bound */
	double (*most)(const BoundSetting *s, FfnPass pass);
} OneAxis;
extern const OneAxis one_axis;      /* defined by the program */

/* the closed form against every N from 1 to beyond it, which must agree, with
 * the times of an explicit schedule at the largest N and at N + 1, left out
 * above 4096 devices; times against N, by formula; small layers, run with data */
extern const Sweep one_axis_sweeps[];
/* the program's experiment: these sweeps */
#define ONE_AXIS_EXPERIMENT(WHAT) {                                           \
	.about = "how many devices " WHAT " keeps busy",                      \
	.options = bounds_options, .sweeps = one_axis_sweeps,                 \
	.cpu_scale = CLUSTER_SCALE, .cpu_only = true }

#endif
