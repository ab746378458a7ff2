/* cost_ahead.h: predictions of steps that have not been measured, and what became
 * of them */
#ifndef EXPERIMENTS_COST_AHEAD_H
#define EXPERIMENTS_COST_AHEAD_H

#include "experiments/cost_folder.h"

/* ms that the folder's cost_model-predicted.tsv has for the step; NaN: none, or
 * the step's table is not newer */
double cost_predicted(int folder, const SeenStep *s);

typedef struct Said {
	int predicted, n;                /* steps; those measured since */
	double median, largest;          /* of the errors of these, without signs */
} Said;
Said   cost_said(int folder);
/* emits several rows */
void   run_predicted(Row *row, const void *config);

#endif
