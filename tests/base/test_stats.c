#include <math.h>

#include "base/stats.h"
#include "tests/base/program.h"

// test a sample whose statistics are known
static void known_sample(void **state)
{
	const double x[] = { 9, 2, 4, 4, 5, 5, 7, 4 };
	Stats s = stats_of(x, 8);
	assert_true(s.mean == 5 && s.median == 4.5 && s.min == 2 && s.max == 9);
	assert_true(fabs(s.sd - sqrt(32.0 / 7)) < 1e-12);
	assert_true(x[0] == 9);
}

// test a sample of one value
static void one_value_has_no_spread(void **state)
{
	double x = 3;
	Stats s = stats_of(&x, 1);
	assert_true(s.mean == 3 && s.sd == 0 && s.median == 3);
}

// test the maximum of numbers and NaN
static void maximum_keeps_nan(void **state)
{
	assert_true(max_or_nan(1, 2) == 2 && max_or_nan(2, 1) == 2);
	assert_true(max_or_nan(-INFINITY, -3) == -3);
	assert_true(isnan(max_or_nan(NAN, 1)) && isnan(max_or_nan(1, NAN)));
	assert_true(isnan(max_or_nan(NAN, INFINITY)));
}

TESTS(
	cmocka_unit_test(known_sample),
	cmocka_unit_test(one_value_has_no_spread),
	cmocka_unit_test(maximum_keeps_nan))
