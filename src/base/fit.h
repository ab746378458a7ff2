/* fit.h: least squares of relative errors, with unknowns that are not negative */
#ifndef BASE_FIT_H
#define BASE_FIT_H

enum { MOST_UNKNOWN = 6 };

/* sets x >= 0 to minimize sum_i (sum_j a[i][j] x[j] / b[i] - 1)^2 over n rows, b
 * > 0. Of unknowns that the rows do not tell apart, the first is used; x[j] = 0
 * for j from `unknowns` on */
void fit_positive(int n, int unknowns, double (*a)[MOST_UNKNOWN], const double *b,
	double x[MOST_UNKNOWN]);

#endif
