/* plan.h: the configurations of a sweep, in the order in which they are run */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include "bench/harness.h"

typedef struct Planned {
	void *config;
	char *cells;                     /* of its keys */
} Planned;

struct Plan {
	const Sweep *sweep;
	int n;
	Planned *planned;
};

void plan_free(Plan *plan);

#endif
