/* the known sums, and the walk over binades against the loop over additions */
#include "base/accumulate.h"
#include <math.h>
#include <stdio.h>
#include "base/random.h"
#include "tests/base/program.h"

// test: the known sums
static void check_sum(Type accumulator, Type stored, const char *want)
{
	char got[32];
	long stall;
	float x = round_to(stored, 0.01f);
	snprintf(got, sizeof got, "%.4f", add_up(accumulator, x, 1000, &stall));
	assert_string_equal(got, want);
}

static void test_known(void **state)
{
	check_sum(FP32, FP32, "10.0001");
	check_sum(FP16, FP16, "9.9531");
	check_sum(FP32, FP16, "10.0021");
	check_sum(BF16, BF16, "4.0000");
}

// test: the walk ends where the loop ends
/* x to four significant bits: such addends meet their tie late, in a binade
 * with many additions, and half of them enter it at an odd sum */
static float few_bits(double x)
{
	int exponent;
	double fraction = frexp(x, &exponent);
	return (float)ldexp(rint(16 * fraction), exponent - 4);
}

static void test_walk(void **state)
{
	static const Type types[] = { FP32, FP16, BF16 };
	for (int i = 0; i < 6000; i++) {
		Type t = types[i % 3];
		long steps = 1 + (long)(random_uniform(1, 0, i) * 5000), stall;
		double size = exp2(12 * random_uniform(1, 1, i) - 10);
		float x = round_to(t, i & 1 ? (float)size : few_bits(size));
		Binade walk[MAX_BINADES];
		int n = walk_binades(t, x, steps, walk);
		assert_true(walk[n - 1].last == add_up(t, x, steps, &stall));
		long counted = 1;
		for (int k = 0; k < n; k++)
			counted += walk[k].steps;
		assert_int_equal(counted, steps);
		if (stall)
			assert_true(walk[n - 1].kept == 0);
	}
}

TESTS(cmocka_unit_test(test_known), cmocka_unit_test(test_walk))
