#include "base/accumulate.h"
#include <assert.h>
#include <math.h>

// add the same number again and again
float add_up(Type accumulator, float x, long steps, long *stall)
{
	float sum = 0;
	*stall = 0;
	for (long i = 1; i <= steps; i++) {
		float next = round_to(accumulator, sum + x);
		if (next == sum && *stall == 0)
			*stall = i;
		sum = next;
	}
	return sum;
}

// cross one binade in a few operations
static double round_on(double spacing, double x)
{
	return rint(x / spacing) * spacing;
}

static Binade cross_binade(Type t, double x, double sum, long left)
{
	int exponent = ilogb(sum);
	double end = ldexp(1, exponent + 1), ulp = type_spacing(t, sum);
	Binade b = { .exponent = exponent, .ulp = ulp, .kept = rint(x / ulp),
	             .first = sum, .last = sum };
	if (b.steps < left && b.last + x < end) {
		b.last = round_on(ulp, b.last + x);
		b.steps++;
	}
	// make all additions that stay below end at once
	double room = end - x - b.last;           /* additions start below end - x */
	long inside = left - b.steps;
	if (room <= 0)
		inside = 0;
	else if (b.kept > 0 && ceil(room / (b.kept * ulp)) < inside)
		inside = (long)ceil(room / (b.kept * ulp));
	b.last += (double)inside * b.kept * ulp;
	b.steps += inside;
	if (b.steps < left && b.last < end) {
		b.last = round_on(type_spacing(t, b.last + x), b.last + x);
		b.steps++;
	}
	return b;
}

// walk through the binades of a sum
int walk_binades(Type accumulator, float x, long steps, Binade walk[])
{
	assert(x > 0 && steps >= 1 && round_to(accumulator, x) == x);
	double sum = x;                       /* the first addition is exact */
	int n = 0;
	for (long left = steps - 1; n == 0 || left > 0; n++) {
		assert(n < MAX_BINADES);
		walk[n] = cross_binade(accumulator, x, sum, left);
		left -= walk[n].steps;
		sum = walk[n].last;
	}
	return n;
}
