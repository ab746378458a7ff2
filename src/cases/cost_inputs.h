/* cost_inputs.h: folders of tables, and the constants that they give */
#ifndef CASES_COST_INPUTS_H
#define CASES_COST_INPUTS_H

#include "bench/harness.h"
#include "cases/cost_fit.h"
#include "model/sizes.h"

typedef struct CostOptions {
	const char *folders; /* commas between; + as in measurements_read */
	int size;                        /* of SIZES; -1: as cost_fit chooses */
} CostOptions;
extern CostOptions cost_options;

typedef struct MachineConfig {
	const char *machine;
	int folder;
} MachineConfig;

/* how many folders --tables names; reads and fits them at the first call */
int            count_folders(void);
const Measurements    *cost_measurements(int folder);
const CostFit *cost_fitted(int folder);
/* sets the columns that say which step it is */
void           cost_set_step(Row *row, const MeasuredStep *s);

#endif
