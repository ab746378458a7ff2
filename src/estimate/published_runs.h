/* published_runs.h: training runs that others have published, as runs of the
 * cost model */
#ifndef ESTIMATE_PUBLISHED_RUNS_H
#define ESTIMATE_PUBLISHED_RUNS_H

#include "base/choices.h"
#include "estimate/cost.h"

/* tokens/s and TFLOP/s of a device; seconds of a step */
#define PUBLISHED_UNITS_OF(FIRST, NEXT) \
	FIRST(PUBLISHED_TOKENS, "tokens/s") NEXT(PUBLISHED_TFLOPS, "TFLOP/s") \
	NEXT(PUBLISHED_SECONDS, "s")
typedef enum { CHOICE_IDS(PUBLISHED_UNITS_OF) } PublishedUnit;
typedef struct PublishedRun {
	const char *source, *cited, *model;
	const char *hardware;            /* a name of cost_sheets */
	long devices;
	CostRun run;
	double value;
	PublishedUnit unit;
} PublishedRun;

int       published_count(void);
/* the runs of a source are adjacent */
PublishedRun published_run(int i);
/* a step of so many ms in the unit in which the source states its value */
double    published_value(const PublishedRun *p, double step_ms);

#endif
