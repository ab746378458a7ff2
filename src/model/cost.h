/* cost.h: what a training step takes on any number of devices, from a few
 * constants */
#ifndef MODEL_COST_H
#define MODEL_COST_H

#include "model/cost_unit.h"

// declare what a step takes
typedef struct CostStep {
	double step_ms;                  /* from one step to the next */
	double compute_ms, comm_ms;      /* of it, each alone */
	double bubble_ms;                /* of the pipeline */
	double nbytes;                   /* that a device holds at most */
} CostStep;

/* NULL, or why there is no such run */
const char *cost_error(const CostRun *r);
CostStep cost_step(const CostMachine *m, const CostRun *r);
/* the same by a device's tasks: steps of them, in the order of its queues; the
 * caller frees the tasks */
QueueSchedule cost_schedule(const CostMachine *m, const CostRun *r, int steps);
/* collectives of data parallelism in a step, with nothing to compute meanwhile */
double   cost_alone(const CostMachine *m, const CostRun *r);
double   cost_memory(const CostRun *r);
/* a pipeline of one forward one backward: t is what both passes of a microbatch
 * take on a stage */
double   cost_pipeline(double t, long stages, long microbatches, long interleave);

#endif
