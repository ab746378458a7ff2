/* cost_measurements.h: measured steps and collectives: the rows of a
 * machine's tables, as the cost model takes them */
#ifndef CASES_COST_MEASUREMENTS_H
#define CASES_COST_MEASUREMENTS_H

#include "estimate/cost.h"

typedef struct MeasuredStep {
	const char *on;                  /* its machine: h200x4 */
	const char *table, *size, *precision, *wire, *via;
	const char *date;                /* of its table; 20 characters */
	long context, batch, ranks;
	CostRun run;                     /* with the passes of one rank alone */
	/* from one step to the next; NaN, as in all fields below: not in the table */
	double step_ms;
	double bwd_ms, wait_ms, comm_ms, alone_ms;
	double single_bwd_ms;            /* of one rank, in the same job */
	double peak_MiB;                 /* without what libraries take */
	/* true: all ranks divide one batch or one model, and the run's passes are
	 * those of one rank with all of it */
	bool divided;
} MeasuredStep;

typedef struct MeasuredCollective {
	const char *transport, *dtype, *device, *name;
	CostCollective what;
	long ranks;
	double nbytes, time_ms;
} MeasuredCollective;

typedef struct Measurements {
	const char *folder, *machine;
	bool gpu;
	int nsteps, ncollectives;
	MeasuredStep *steps;
	MeasuredCollective *collectives;
	double TFLOPs;                   /* measured peak of bf16; NaN: unknown */
	struct Records *tables[64];      /* texts of rows point into them */
	int ntables;
} Measurements;

/* reads tables/h200x2; after a + more folders of the same GPUs, of which only
 * steps of one rank and of more ranks than the first has are taken. A folder
 * without any of the tables: exit 2. The result is never freed */
Measurements measurements_read(const char *folders);

#endif
