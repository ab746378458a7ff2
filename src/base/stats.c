#include "base/stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// compare two numbers for sorting
static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

Stats stats_of(const double *x, int n)
{
	assert(n >= 1);
	double *sorted = need(malloc(n * sizeof *sorted));
	memcpy(sorted, x, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, ascending);
	Stats s = { .n = n, .min = sorted[0], .max = sorted[n - 1] };
	s.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
	for (int i = 0; i < n; i++)
		s.mean += sorted[i] / n;
	for (int i = 0; i < n; i++)
		s.sd += (sorted[i] - s.mean) * (sorted[i] - s.mean);
	s.sd = n > 1 ? sqrt(s.sd / (n - 1)) : 0;
	free(sorted);
	return s;
}
