/* cost_proof.h: rows of the cost model's constants, and of its predictions beside
 * what was measured or published */
#ifndef EXPERIMENTS_COST_PROOF_H
#define EXPERIMENTS_COST_PROOF_H

#include "experiments/cluster.h"
#include "experiments/cost_folder.h"
#include "experiments/cost_public.h"

typedef struct SourceConfig {
	const char *source;
	int first; /* index of its first run for published_run */
} SourceConfig;

/* each emits several rows */
void run_constants(Row *row, const void *config);
void run_collectives(Row *row, const void *config);
void run_steps(Row *row, const void *config);
void run_memory(Row *row, const void *config);
void run_published(Row *row, const void *config);

#endif
