/* cost_seen.h: steps and collectives of a machine's tables, as the cost model
 * takes them */
#ifndef EXPERIMENTS_COST_SEEN_H
#define EXPERIMENTS_COST_SEEN_H

#include "model/cost.h"

typedef struct SeenStep {
	const char *on;                  /* its machine: h200x4 */
	const char *table, *size, *precision, *wire, *via;
	const char *date;                /* of its table; 20 characters */
	long context, batch, ranks;
	CostRun run;                     /* with the passes of one rank alone */
	/* from one step to the next; NaN: not in the table, as with all below */
	double step_ms;
	double bwd_ms, wait_ms, comm_ms, alone_ms;
	double single_bwd_ms;            /* of one rank, in the same job */
	double peak_MiB;                 /* without what libraries take */
	/* the batch is that of all ranks, which divide it or its model; the run's
	 * passes are those of one rank with all of it */
	bool divided;
} SeenStep;

typedef struct SeenCollective {
	const char *transport, *dtype, *device, *name;
	CostCollective what;
	long ranks;
	double nbytes, time_ms;
} SeenCollective;

typedef struct Seen {
	const char *folder, *machine;
	bool gpu;
	int nsteps, ncollectives;
	SeenStep *steps;
	SeenCollective *collectives;
	double TFLOPs;                   /* measured peak of bf16; NaN: unknown */
	struct Records *tables[64];      /* texts of rows point into them */
	int ntables;
} Seen;

/* folders: tables/h200x2; after a + others of the same GPUs, of which only steps
 * of more ranks than the first's are taken, and of one. A folder without any of
 * the tables: exit 2. Never freed */
Seen seen_read(const char *folders);

#endif
