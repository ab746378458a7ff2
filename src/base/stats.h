/* stats.h: what we report of repeated measurements */
#ifndef BASE_STATS_H
#define BASE_STATS_H

typedef struct Stats {
	int n;
	/* sd: sample standard deviation, 0 when n = 1 */
	double mean, sd, min, median, max;
} Stats;

Stats stats_of(const double *x, int n);   /* n >= 1; x keeps its order */

#endif
