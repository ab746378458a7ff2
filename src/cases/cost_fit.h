/* cost_fit.h: the constants of the cost model, from measured steps */
#ifndef CASES_COST_FIT_H
#define CASES_COST_FIT_H

#include "cases/cost_measurements.h"

enum { FIT_RANKS = 2 };

typedef struct CostFit {
	CostMachine machine;
	const char *size, *precision, *via;      /* of the rows of the fit */
	int rows;
	/* root mean square of the relative errors of what was fitted */
	double alone_rms, step_rms;
} CostFit;

/* fits to steps of this size; NULL: of medium or else of large, whichever has
 * rows with flat gradients. No such row: exit 2 */
CostFit cost_fit(const Measurements *seen, const char *size);
/* whether a step is one of those that the constants were fitted to */
bool    cost_fit_used(const CostFit *fit, const MeasuredStep *s);
/* the step's run; passes of a rank that has only a part of the model or the batch
 * are that part, by the constants, of one rank's passes */
CostRun cost_fit_run(const CostFit *fit, const MeasuredStep *s);
/* whether constants of collectives are fitted to arrays of so many bytes */
bool    cost_fit_size(double nbytes);
/* sets the constants of one collective of a transport, fitted to those sizes on
 * two ranks in fp32; false: there are no rows */
bool    cost_fit_collective(const Measurements *seen,
	const MeasuredCollective *of,
	CostMachine *m);

#endif
