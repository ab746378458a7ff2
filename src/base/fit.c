#include "base/fit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

// solve least squares with unknowns at least 0
/* solves the normal equations for the unknowns of the set, by elimination; false:
 * they are singular, or an unknown is negative */
static bool solve_equations(double (*m)[MOST_UNKNOWN + 1], int set, double *x)
{
	double a[MOST_UNKNOWN][MOST_UNKNOWN + 1];
	int of[MOST_UNKNOWN], n = 0;
	// copy the equations of the unknowns in the set
	for (int j = 0; j < MOST_UNKNOWN; j++)
		if (set >> j & 1)
			of[n++] = j;
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++)
			a[i][j] = m[of[i]][of[j]];
		a[i][n] = m[of[i]][MOST_UNKNOWN];
	}
	// eliminate one unknown after another
	for (int i = 0; i < n; i++) {
		if (a[i][i] <= 1e-9 * m[of[i]][of[i]])
			return false;
		for (int k = 0; k < n; k++)
			for (int j = n; k != i && j >= i; j--)
				a[k][j] -= a[k][i] / a[i][i] * a[i][j];
	}
	for (int j = 0; j < MOST_UNKNOWN; j++)
		x[j] = 0;
	for (int i = 0; i < n; i++)
		if ((x[of[i]] = a[i][n] / a[i][i]) < 0)
			return false;
	return true;
}

// try every set of unknowns
void fit_positive(int n, int unknowns, double (*a)[MOST_UNKNOWN], const double *b,
	double x[MOST_UNKNOWN])
{
	double m[MOST_UNKNOWN][MOST_UNKNOWN + 1] = { { 0 } }, best = INFINITY;
	// form the normal equations
	for (int r = 0; r < n; r++)
		for (int i = 0; i < MOST_UNKNOWN; i++) {
			for (int j = 0; j < MOST_UNKNOWN; j++)
				m[i][j] += a[r][i] * a[r][j] / (b[r] * b[r]);
			m[i][MOST_UNKNOWN] += a[r][i] / b[r];
		}
	for (int j = 0; j < MOST_UNKNOWN; j++)
		x[j] = 0;
	for (int set = 1; set < 1 << unknowns; set++) {
		double y[MOST_UNKNOWN], error = 0;
		if (!solve_equations(m, set, y))
			continue;
		// keep the set if its error is least
		for (int r = 0; r < n; r++) {
			double sum = 0;
			for (int j = 0; j < MOST_UNKNOWN; j++)
				sum += a[r][j] * y[j];
			error += (sum / b[r] - 1) * (sum / b[r] - 1);
		}
		if (error < best * (1 - 1e-9) - 1e-15) {
			best = error;
			memcpy(x, y, sizeof y);
		}
	}
}
