/* cost_validation.h: rows of the cost model's constants, and of its
 * predictions beside what was measured or published */
#ifndef CASES_COST_VALIDATION_H
#define CASES_COST_VALIDATION_H

#include "cases/cluster.h"
#include "cases/cost_inputs.h"
#include "estimate/published_runs.h"

typedef struct SourceConfig {
	const char *source;
	int first; /* index of its first run for published_run */
} SourceConfig;

/* sweeps whose runs emit several rows each */
void run_constants(Row *row, const void *config);
void run_collectives(Row *row, const void *config);
void run_steps(Row *row, const void *config);
void run_memory(Row *row, const void *config);
void run_published(Row *row, const void *config);

#endif
