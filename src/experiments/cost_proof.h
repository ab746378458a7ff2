/* cost_proof.h: rows of the cost model's constants, and of its predictions beside
 * what was measured or published */
#ifndef EXPERIMENTS_COST_PROOF_H
#define EXPERIMENTS_COST_PROOF_H

#include "bench/harness.h"
#include "experiments/cluster.h"
#include "experiments/cost_fit.h"
#include "experiments/cost_public.h"

typedef struct CostGiven {
	const char *folders;             /* commas between */
	int size;                        /* of SIZES; -1: as cost_fit chooses */
} CostGiven;
extern CostGiven cost_given;

/* of the option's folders; each is read once */
int            cost_folders(void);
const Seen    *cost_seen(int folder);
const CostFit *cost_fitted(int folder);

typedef struct MachineConfig {
	const char *machine;
	int folder;
} MachineConfig;
typedef struct SourceConfig {
	const char *source;
	int first;                       /* of public_run */
} SourceConfig;

/* the columns that say which step it is */
void cost_set_step(Row *row, const SeenStep *s);
/* each emits several rows */
void run_constants(Row *row, const void *config);
void run_collectives(Row *row, const void *config);
void run_steps(Row *row, const void *config);
void run_memory(Row *row, const void *config);
void run_public(Row *row, const void *config);

#endif
