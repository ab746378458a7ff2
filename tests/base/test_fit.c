/* least squares with unknowns that are not negative */
#include <math.h>
#include <time.h>

#include "base/fit.h"
#include "base/random.h"
#include "tests/base/program.h"

enum { ROWS = 12 };
static uint64_t seed, draws;

// draw rows, and measure how they are missed
static double uniform(void)
{
	return random_uniform(seed, 5, draws++);
}

/* rows of random size, so that b = a x exactly */
static void draw(double (*a)[MOST_UNKNOWN], double *b, const double *x)
{
	for (int r = 0; r < ROWS; r++) {
		double size = exp(6 * uniform());
		b[r] = 0;
		for (int j = 0; j < MOST_UNKNOWN; j++) {
			a[r][j] = size * uniform();
			b[r] += a[r][j] * x[j];
		}
	}
}

static double error_of(double (*a)[MOST_UNKNOWN], const double *b,
	const double *x)
{
	double error = 0;
	for (int r = 0; r < ROWS; r++) {
		double sum = 0;
		for (int j = 0; j < MOST_UNKNOWN; j++)
			sum += a[r][j] * x[j];
		error += (sum / b[r] - 1) * (sum / b[r] - 1);
	}
	return error;
}

// test: unknowns are found, and none is negative
static void what_made_the_rows_is_found(void **state)
{
	for (int trial = 0; trial < 50; trial++) {
		double a[ROWS][MOST_UNKNOWN], b[ROWS], x[MOST_UNKNOWN], y[MOST_UNKNOWN];
		for (int j = 0; j < MOST_UNKNOWN; j++)
			x[j] = uniform() < 0.3 ? 0 : 0.1 + uniform();
		x[trial % MOST_UNKNOWN] = 1;
		draw(a, b, x);
		fit_positive(ROWS, MOST_UNKNOWN, a, b, y);
		for (int j = 0; j < MOST_UNKNOWN; j++)
			if (!(fabs(y[j] - x[j]) <= 1e-6))
				fail_msg("seed %lu: unknown %d is %g, not %g",
					(unsigned long)seed, j, y[j], x[j]);
	}
}

// test that no unknown is negative
/* no other point nearby that is allowed is better */
static void no_unknown_is_negative(void **state)
{
	for (int trial = 0; trial < 50; trial++) {
		double a[ROWS][MOST_UNKNOWN], b[ROWS], y[MOST_UNKNOWN],
			x[MOST_UNKNOWN] = { 3, 2, 4, 2, 3 };
		draw(a, b, x);
		for (int r = 0; r < ROWS; r++)
			b[r] *= 0.2 + uniform();
		fit_positive(ROWS, MOST_UNKNOWN, a, b, y);
		double least = error_of(a, b, y);
		for (int j = 0; j < MOST_UNKNOWN; j++)
			for (int sign = -1; sign <= 1; sign += 2) {
				double kept = y[j];
				assert_true(y[j] >= 0);
				y[j] = fmax(0, y[j] + sign * 1e-3);
				assert_true(error_of(a, b, y) >= least * (1 - 1e-12));
				y[j] = kept;
			}
	}
}

// test: columns that say the same
static void equal_columns_leave_the_first(void **state)
{
	double a[ROWS][MOST_UNKNOWN], b[ROWS], y[MOST_UNKNOWN],
		x[MOST_UNKNOWN] = { 1, 2, 0, 0, 0 };
	draw(a, b, x);
	for (int r = 0; r < ROWS; r++) {
		b[r] = a[r][0] + 2 * a[r][1];
		a[r][3] = 2 * a[r][1];
		a[r][2] = a[r][4] = 0;
	}
	fit_positive(ROWS, MOST_UNKNOWN, a, b, y);
	assert_true(fabs(y[0] - 1) < 1e-9 && fabs(y[1] - 2) < 1e-9);
	assert_true(y[2] == 0 && y[3] == 0 && y[4] == 0);
	fit_positive(ROWS, 1, a, b, y);
	assert_true(y[0] > 0 && y[1] == 0);
	fit_positive(0, MOST_UNKNOWN, a, b, y);
	assert_true(y[0] == 0 && y[4] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_made_the_rows_is_found),
		cmocka_unit_test(no_unknown_is_negative),
		cmocka_unit_test(equal_columns_leave_the_first),
	};
	seed = (uint64_t)time(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
