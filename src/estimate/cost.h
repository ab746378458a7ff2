/* cost.h: what a training step takes on any number of devices, from a few
 * constants */
#ifndef ESTIMATE_COST_H
#define ESTIMATE_COST_H

#include "estimate/cost_unit.h"

// declare what a step takes
typedef struct CostStep {
	double step_ms;                  /* from one step to the next */
	double compute_ms, comm_ms;      /* computing and collectives, each alone */
	double bubble_ms;                /* idle time of the pipeline */
	double nbytes;                   /* the most memory that a device needs */
} CostStep;

/* NULL, or why such a run is impossible */
const char *cost_error(const CostRun *r);
CostStep cost_step(const CostMachine *m, const CostRun *r);
/* the tasks of a device in several steps; the caller frees them by
 * schedule_free */
QueueSchedule cost_schedule(const CostMachine *m, const CostRun *r, int steps);
/* ms of a step's collectives of data parallelism with nothing beside them */
double   cost_alone(const CostMachine *m, const CostRun *r);
double   cost_memory(const CostRun *r);
/* ms of a pipeline that alternates one forward and one backward pass (1F1B);
 * t: ms of both passes of a microbatch on one stage */
double   cost_pipeline(double t, long stages, long microbatches, long interleave);

#endif
