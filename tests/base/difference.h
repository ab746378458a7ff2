/* difference.h: the slope of a function of one element, from four values */
#ifndef TESTS_DIFFERENCE_H
#define TESTS_DIFFERENCE_H

#include "base/real.h"

/* df/dx with an error of order h^4; x has its old value afterwards */
static inline double slope_at(double (*f)(void *), void *context, real *x,
	double h)
{
	double l[4];
	real kept = *x;
	for (int i = 0; i < 4; i++) {
		*x = (real)(kept + h * (const int[]){ -2, -1, 1, 2 }[i]);
		l[i] = f(context);
	}
	*x = kept;
	return (8 * (l[2] - l[1]) - (l[3] - l[0])) / (12 * h);
}

#endif
