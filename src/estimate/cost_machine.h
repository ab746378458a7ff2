/* cost_machine.h: what a device, its links and its collectives take; ms, 1e12
 * FLOP/s, 1e9 bytes/s */
#ifndef ESTIMATE_COST_MACHINE_H
#define ESTIMATE_COST_MACHINE_H

#include "estimate/schedule.h"

typedef struct CostLink {
	double GBps;                     /* a device sends, and receives as much */
	double step_us;                  /* latency of a step of a ring */
} CostLink;

typedef enum { COST_ALL_REDUCE, COST_REDUCE_SCATTER, COST_ALL_GATHER,
	COST_BROADCAST, COST_COLLECTIVES } CostCollective;

// declare the constants of a machine
typedef struct CostMachine {
	double TFLOPs, GBps;             /* of matmuls; of memory */
	double memory_GB;
	/* overhead of a block, beside the time of its FLOPs and bytes */
	double forward_us, backward_us;
	double call_us;                  /* alpha: of any collective */
	double broadcast_us;             /* of a broadcast, in addition */
	double sum_ms_per_GB;            /* gamma: a GB that arrives and is added */
	/* time for each square root of a MB that a device sends: a larger array
	 * travels in more and larger pieces */
	double pieces_us;
	CostLink near, far;              /* inside a node; between nodes */
	/* cost of a byte in each collective, relative to an all-reduce; 0: the
	 * same as there; negative: none */
	double byte_cost[COST_COLLECTIVES];
	long node;                       /* devices of a node */
	QueueStretch stretch;
} CostMachine;

// declare what a collective costs
/* n devices that take part in a collective, `node` of them on each node */
typedef struct CostGroup {
	long n, node;
} CostGroup;

/* ms of a collective on an array of nbytes in all; 0 for one device or no
 * bytes */
double cost_collective(const CostMachine *m, CostCollective what, CostGroup g,
	double nbytes);

#endif
