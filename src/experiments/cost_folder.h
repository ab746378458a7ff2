/* cost_folder.h: folders of tables, and the constants that they give */
#ifndef EXPERIMENTS_COST_FOLDER_H
#define EXPERIMENTS_COST_FOLDER_H

#include "bench/harness.h"
#include "experiments/cost_fit.h"

typedef struct CostGiven {
	const char *folders;             /* commas between; + as in seen_read */
	int size;                        /* of SIZES; -1: as cost_fit chooses */
} CostGiven;
extern CostGiven cost_given;

typedef struct MachineConfig {
	const char *machine;
	int folder;
} MachineConfig;

/* of the option's folders; each is read once */
int            cost_folders(void);
const Seen    *cost_seen(int folder);
const CostFit *cost_fitted(int folder);
/* the columns that say which step it is */
void           cost_set_step(Row *row, const SeenStep *s);

#endif
