/* buckets of neighbours, within a bound */
#include <time.h>

#include "base/buckets.h"
#include "base/random.h"
#include "tests/base/program.h"

enum { PARTS = 40 };

/* cuts the parts from the last to the first, and checks each decision */
static void check_cut(const double *offset, const double *count, double most)
{
	BucketCutter cutter = { .most = most };
	double end = 0;
	int parts = 0;
	for (int i = PARTS - 1; i >= 0; i--) {
		bool begins = bucket_begins(&cutter, offset[i], count[i]);
		bool fits = parts > 0 && end - offset[i] <= most;
		assert_int_equal(begins, !fits);
		end = begins ? offset[i] + count[i] : end;
		parts = begins ? 1 : parts + 1;
		assert_true(cutter.end == end);
		assert_true(parts == 1 || end - offset[i] <= most);
	}
}

static void buckets_are_filled_within_the_bound(void **state)
{
	uint64_t seed = (uint64_t)time(NULL), draws = 0;
	for (int trial = 0; trial < 100; trial++) {
		double offset[PARTS], count[PARTS], at = 0;
		for (int i = 0; i < PARTS; i++) {
			count[i] = 1 + (int)(1000 * random_uniform(seed, 5, draws++));
			offset[i] = at;
			at += count[i] + (i % 3 == 0 ? 8 : 0);
		}
		check_cut(offset, count, 0);
		check_cut(offset, count, at * random_uniform(seed, 5, draws++));
		check_cut(offset, count, offset[PARTS - 1] + count[PARTS - 1]);
	}
}

TESTS(
	cmocka_unit_test(buckets_are_filled_within_the_bound))
