/* cost_predictions.h: predictions of steps that have not been measured, and
 * what became of them */
#ifndef CASES_COST_PREDICTIONS_H
#define CASES_COST_PREDICTIONS_H

#include "cases/cost_inputs.h"

/* the prediction in ms that the folder's cost_model-predicted.tsv has for the
 * step; NaN: none, or the step's table is not newer than the prediction */
double prediction_before(int folder, const MeasuredStep *s);

typedef struct PredictionErrors {
	int predicted, n;                /* steps predicted; those measured since */
	double median, largest;          /* of the n relative errors, without signs */
} PredictionErrors;
PredictionErrors   prediction_errors(int folder);
/* ends the program if the folder's table of predictions cannot be read */
void   predictions_try(int folder);
/* emits a row for each step that no table has */
void   run_predicted(Row *row, const void *config);

#endif
