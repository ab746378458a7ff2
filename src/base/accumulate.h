/* base/accumulate.h: adding one number again and again in a narrow format */
#ifndef BASE_ACCUMULATE_H
#define BASE_ACCUMULATE_H
#include "base/number.h"

/* the sum of `steps` copies of x, each addition rounded to the accumulator's
 * format; *stall: the first addition that leaves the sum as it was, or 0 */
float add_up(Type accumulator, float x, long steps, long *stall);

typedef struct Binade {
	int exponent;          /* sums in [2^exponent, 2^(exponent+1)) */
	double ulp;            /* their spacing */
	double kept;           /* spacings by which one addition moves the sum */
	double first, last;    /* sum at entry; sum after the steps below */
	long steps;            /* additions made from sums in this binade */
} Binade;

enum { MAX_BINADES = 64 };

/* adds x > 0 `steps` times, binade by binade; returns the number of binades, at
 * most MAX_BINADES. The last one's `last` is the sum */
int walk_binades(Type accumulator, float x, long steps, Binade walk[]);
#endif
