/* stats.h: what we report of repeated measurements */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include <math.h>

typedef struct Stats {
	int n;
	/* in the unit of the sample; sd: sample standard deviation, 0 when n = 1 */
	double mean, sd, min, median, max;
} Stats;

/* the statistics of x[0 .. n-1], n >= 1; x keeps its order */
Stats stats_of(const double *x, int n);

/* the larger of both; NaN if either is NaN */
static inline double max_or_nan(double a, double b)
{
	return isnan(a) || b <= a ? a : b;
}

#endif
