#include "tests/ops/compare.h"

enum { LENGTH = 7 };

// count the mismatches after element i becomes x
static size_t mismatches(size_t i, real x)
{
	Array got = poisoned(LENGTH);
	Expected *want = expected(LENGTH);
	for (size_t j = 0; j < LENGTH; j++) {
		reals(got)[j] = (real)j;
		want[j] = rounded((double)j, (double)j, 1);
	}
	reals(got)[i] = x;
	Mismatch m = compare(got.at, want, LENGTH);
	if (m.count)
		assert_int_equal(m.worst, i);
	return m.count;
}

static void mistakes_are_found(void **state)
{
	assert_int_equal(mismatches(3, 3), 0);
	assert_int_equal(mismatches(3, (real)3.01), 1);
	assert_int_equal(mismatches(3, -3), 1);
	assert_int_equal(mismatches(6, (real)NAN), 1);
	assert_int_equal(mismatches(0, (real)INFINITY), 1);
}

// test that what was never written fails
static void forgotten_values_fail(void **state)
{
	Array got = poisoned(LENGTH);
	Expected *want = expected(LENGTH);
	assert_int_equal(compare(got.at, want, LENGTH).count, LENGTH);
	for (size_t j = 0; j < LENGTH; j++)
		want[j] = (Expected){ 1, INFINITY };
	assert_int_equal(compare(got.at, want, LENGTH).count, LENGTH);
	memset(got.at, 0, LENGTH * sizeof(real));
	assert_int_equal(compare(got.at, want, LENGTH).count, 0);
}

// test that the guards see both ends
static void guards_see_both_ends(void **state)
{
	unsigned char *p = guarded(LENGTH);
	assert_int_equal(damaged_guards(), 0);
	p[-1] = 0;
	p[LENGTH] = 0;
	assert_int_equal(damaged_guards(), 2);
	p[-1] = 0xff;
	p[LENGTH] = 0xff;
	memset(p, 0, LENGTH);
	assert_int_equal(release(state), 0);
}

TESTS(
	checked(mistakes_are_found),
	checked(forgotten_values_fail),
	cmocka_unit_test(guards_see_both_ends))
