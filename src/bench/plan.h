/* plan.h: the configurations of a sweep, in the order in which they are run */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stddef.h>

#include "bench/key.h"

typedef struct Planned {
	void *config;
	char *cells;                     /* of its keys */
} Planned;

typedef struct Plan {
	const struct Sweep *sweep;       /* harness.h */
	const Key *keys;
	int n;
	Planned *planned;
} Plan;

/* plan_add(plan, &(Config){ ... }): one more configuration, of the type whose
 * fields are the sweep's keys; it is copied, what it points at is not */
#define plan_add(plan, ...) \
	plan_copy(plan, __VA_ARGS__, sizeof *(__VA_ARGS__))
void plan_copy(Plan *plan, const void *config, size_t size);
void plan_free(Plan *plan);

#endif
