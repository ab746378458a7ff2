/* compare.h: comparisons that a NaN fails */
#ifndef TESTS_COMPARE_H
#define TESTS_COMPARE_H

#include <math.h>

#include "ops/cpu/cpu.h"
#include "ops/ops.h"
#include "tests/ops/guarded.h"

#define EPS (TYPE_REAL == FP64 ? 0x1p-53 : 0x1p-24)  /* error of one rounding */

// compare with expected values
typedef struct Expected {
	double value, limit;           /* the largest |got - value| allowed */
} Expected;

typedef struct Mismatch {
	size_t count, worst;           /* elements out of bounds; the worst of them */
	double excess;
} Mismatch;

/* a value that is wrong by at most so many roundings of that magnitude */
static inline Expected rounded(double value, double magnitude, double roundings)
{
	return (Expected){ value, roundings * EPS * magnitude };
}

/* holds got[i] against want[i]; a NaN in either is a mismatch, and infinity
 * agrees with itself alone */
static inline Mismatch compare(const real *got, const Expected *want, size_t n)
{
	Mismatch m = { 0 };
	for (size_t i = 0; i < n; i++) {
		double error = fabs(got[i] - want[i].value);
		if (error <= want[i].limit
			|| (isinf(want[i].value) && got[i] == want[i].value))
			continue;
		double excess = isnan(error) ? INFINITY : error - want[i].limit;
		if (m.count++ == 0 || excess > m.excess)
			m.worst = i, m.excess = excess;
	}
	return m;
}

static inline Expected *expected(size_t n)
{
	return guarded(n * sizeof(Expected));
}

static inline void expect_close(const char *what, Array got,
	const Expected *want, size_t n)
{
	Mismatch m = compare(got.at, want, n);
	if (m.count)
		fail_msg("%s: %zu of %zu elements are wrong, worst is element %zu: "
			"%.9g, not %.9g within %.2g", what, m.count, n, m.worst,
			(double)reals(got)[m.worst], want[m.worst].value,
			want[m.worst].limit);
}

// compare bit for bit
static inline void expect_same(const char *what, Array got, Array want,
	size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(&reals(got)[i], &reals(want)[i], sizeof(real)) != 0)
			fail_msg("%s: element %zu of %zu differs: %.9g, not %.9g", what,
				i, n, (double)reals(got)[i], (double)reals(want)[i]);
}

#endif
