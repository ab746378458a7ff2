#include <math.h>

#include "ops/cpu/exponential.h"
#include "tests/base/program.h"

// test the exponential over its range
static void close_everywhere(void **state)
{
	double worst = 0;
	for (float x = -87.29f; x < 88.29f; x += 0.0001f) {
		double error = fabs(exponential(x) / exp((double)x) - 1);
		worst = error > worst ? error : worst;
		if (!(error < 0x1p-22))
			fail_msg("e^%.9g is %.9g", x, (double)exponential(x));
	}
	assert_true(worst > 0x1p-26);
}

// test the ends of the exponential
static void special_values(void **state)
{
	assert_true(exponential(0) == 1 && exponential(-0.0f) == 1);
	assert_true(exponential(-88) == 0 && exponential(-INFINITY) == 0);
	assert_true(isinf(exponential(89)) && isinf(exponential(INFINITY)));
	assert_true(isnan(exponential(NAN)));
	assert_true(exponential(1e-30f) == 1 && exponential(-1e-30f) == 1);
}

TESTS(cmocka_unit_test(close_everywhere), cmocka_unit_test(special_values))
