/* cost_fit.h: the constants of the cost model, from measured steps */
#ifndef EXPERIMENTS_COST_FIT_H
#define EXPERIMENTS_COST_FIT_H

#include "experiments/cost_seen.h"

enum { FIT_RANKS = 2, MOST_UNKNOWN = 6 };

/* min sum_i (sum_j a[i][j] x[j] / b[i] - 1)^2 over x[j] >= 0, for n rows, b > 0.
 * Of unknowns that the rows do not tell apart, the first; those from `unknowns`
 * on are 0 */
void fit_positive(int n, int unknowns, double (*a)[MOST_UNKNOWN], const double *b,
	double x[MOST_UNKNOWN]);

typedef struct CostFit {
	CostMachine machine;
	const char *size, *precision, *via;      /* of the rows of the fit */
	int rows;
	/* root mean square of the relative errors of what was fitted */
	double alone_rms, step_rms;
} CostFit;

/* size: or NULL, then medium or else large, if there are flat rows of it */
CostFit cost_fit(const Seen *seen, const char *size);
bool    cost_fit_used(const CostFit *fit, const SeenStep *s);
/* the step's run; passes of a rank that has only a part are a fraction of one
 * rank's, which the constants give */
CostRun cost_fit_run(const CostFit *fit, const SeenStep *s);
/* of the sizes of collectives to which constants are fitted */
bool    cost_fit_size(double nbytes);
/* the constants of one collective of a transport, from those sizes on two ranks
 * in fp32; false: there are no rows */
bool    cost_fit_collective(const Seen *seen, const SeenCollective *of,
	CostMachine *m);

#endif
