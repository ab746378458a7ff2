/* test_collective_case.c: integers whose sums are known */
#include "cases/collective_case.h"
#include "tests/base/program.h"

#include <math.h>
#include <stdint.h>


enum { N = 101, AT = 23, SALT = 7, RANKS = 5 };

// compare integers of ranks with their sums
static void sums_are_those_of_single_ranks(void **state)
{
	real sum[N], one[N];
	int seen[8] = { 0 };
	integers_draw(sum, AT, N, SALT, 0, RANKS);
	for (int rank = 0; rank < RANKS; rank++) {
		integers_draw(one, AT, N, SALT, rank, rank + 1);
		for (int i = 0; i < N; i++) {
			assert_true((int)one[i] >= -4 && (int)one[i] <= 3);
			seen[(int)one[i] + 4]++;
			sum[i] -= one[i];
		}
	}
	for (int i = 0; i < N; i++)
		assert_true(sum[i] == 0);
	for (int value = 0; value < 8; value++)
		assert_true(seen[value] > N * RANKS / 16);
}

static void a_part_is_part_of_the_whole(void **state)
{
	real whole[AT + N], part[N], other[N];
	int same = 0;
	integers_draw(whole, 0, AT + N, SALT, 1, 3);
	integers_draw(part, AT, N, SALT, 1, 3);
	integers_draw(other, AT, N, SALT + 1, 1, 3);
	for (int i = 0; i < N; i++) {
		assert_true(part[i] == whole[AT + i]);
		same += part[i] == other[i];
	}
	assert_true(same < N / 2);
}

// count wrong elements, and check factors
static void wrong_elements_are_counted(void **state)
{
	real x[N];
	integers_draw(x, AT, N, SALT, 0, RANKS);
	assert_int_equal(integers_wrong(x, AT, N, SALT, 0, RANKS), 0);
	assert_true(integers_wrong(x, AT, N, SALT, 0, RANKS - 1) > N / 2);
	x[0] += 1;
	x[N / 2] = NAN;
	x[N - 1] -= 1;
	assert_int_equal(integers_wrong(x, AT, N, SALT, 0, RANKS), 3);
}

static void factors(void **state)
{
	assert_true(collective_factor(ALL_REDUCES, 2) == 1);
	assert_true(collective_factor(ALL_REDUCES, 4) == 1.5);
	assert_true(collective_factor(REDUCE_SCATTERS, 4) == 0.75);
	assert_true(collective_factor(ALL_GATHERS, 2) == 0.5);
	assert_true(collective_factor(BROADCASTS, 4) == 1);
}

TESTS(
	cmocka_unit_test(sums_are_those_of_single_ranks),
	cmocka_unit_test(a_part_is_part_of_the_whole),
	cmocka_unit_test(wrong_elements_are_counted),
	cmocka_unit_test(factors))
