/* cost_public.h: training runs that others have published, as runs of the cost
 * model */
#ifndef EXPERIMENTS_COST_PUBLIC_H
#define EXPERIMENTS_COST_PUBLIC_H

#include "model/cost.h"

/* tokens/s and TFLOP/s of a device; seconds of a step */
typedef enum { PUBLIC_TOKENS, PUBLIC_TFLOPS, PUBLIC_SECONDS } PublicUnit;
typedef struct PublicRun {
	const char *source, *cited, *model;
	const char *hardware;            /* of cost_sheets */
	long devices;
	CostRun run;
	double value;
	PublicUnit unit;
} PublicRun;

int       public_count(void);
/* those of a source are adjacent */
PublicRun public_run(int i);
/* what the source would have said of a step of so many ms */
double    public_value(const PublicRun *p, double step_ms);

#endif
