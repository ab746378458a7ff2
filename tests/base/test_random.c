#include <math.h>
#include <string.h>

#include "base/random.h"
#include "tests/base/program.h"

// test the vectors that are published
static void published_vectors(void **state)
{
	uint32_t w[4];
	const uint32_t zeros[4] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
		0x9b00dbd8 };
	const uint32_t ones[4] = { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd };
	const uint32_t digits[4] = { 0xd16cfe09, 0x94fdcceb, 0x5001e420,
		0x24126ea1 };
	philox(w, 0, 0, 0);
	assert_memory_equal(w, zeros, sizeof w);
	philox(w, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	assert_memory_equal(w, ones, sizeof w);
	philox(w, 0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88);
	assert_memory_equal(w, digits, sizeof w);
}

// test the moments of the distributions
static void moments(void **state)
{
	enum { N = 200000 };
	double mean = 0, square = 0, fourth = 0, uniform = 0, largest = 0,
		truncated = 0;
	for (int i = 0; i < N; i++) {
		double z = random_normal(1, 2, i), t = random_truncated(1, 3, i, 3);
		mean += z / N, square += z * z / N, fourth += z * z * z * z / N;
		uniform += random_uniform(1, 4, i) / N;
		truncated += t * t / N;
		largest = fmax(largest, fabs(t));
	}
	double tolerance = 5 / sqrt(N);
	assert_true(fabs(mean) < tolerance && fabs(square - 1) < 1.5 * tolerance
		&& fabs(fourth - 3) < 10 * tolerance);
	assert_true(fabs(uniform - 0.5) < 0.3 * tolerance);
	assert_true(largest <= 3 && largest > 2.9);
	assert_true(fabs(truncated - 0.97334) < 1.5 * tolerance);
}

// test the ends of the uniforms
static void units_lie_between(void **state)
{
	assert_true(random_unit(0) == 0x1p-54);
	assert_true(random_unit(UINT64_MAX) == 1 - 0x1p-53);
	for (uint64_t k = 1; k < 1000; k++) {  /* all others: k and a half */
		uint64_t high = (UINT64_C(1) << 53) - 1 - k;
		assert_true(random_unit(k << 11) == (k + 0.5) * 0x1p-53);
		assert_true(random_unit(high << 11) == ((double)high + 0.5) * 0x1p-53);
		assert_true(random_unit(high << 11) < 1);
	}
}

// test that streams differ
static void streams_differ(void **state)
{
	assert_true(random_bits(1, 0, 0) == random_bits(1, 0, 0));
	assert_true(random_bits(1, 0, 0) != random_bits(1, 0, 1));
	assert_true(random_bits(1, 0, 0) != random_bits(1, 1, 0));
	assert_true(random_bits(1, 0, 0) != random_bits(2, 0, 0));
}

TESTS(
	cmocka_unit_test(published_vectors),
	cmocka_unit_test(moments),
	cmocka_unit_test(streams_differ),
	cmocka_unit_test(units_lie_between))
