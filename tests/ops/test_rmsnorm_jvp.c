/* RMSNorm's gradients: finite differences, projection, scaling; f64 build */
#include <math.h>

#include "base/random.h"
#include "ops/cpu/cpu.h"
#include "tests/base/difference.h"
#include "tests/base/program.h"

// draw a norm problem
enum { MOST = 4096 };
static real x[MOST], g[MOST], dy[MOST], y[MOST], rho[MOST], dx[MOST], dg[MOST];
#define ARRAY(name) ((Array){ name, TYPE_REAL })

static void draw(size_t rows, size_t H, double start)
{
	for (size_t i = 0; i < rows * H; i++) {
		x[i] = random_normal(1, 1, i) + 0.3;
		g[i] = 1 + 0.5 * random_normal(1, 2, i);
		dy[i] = random_normal(1, 3, i);
		dx[i] = dg[i] = start;
	}
}

// run it forward and backward
static double loss(size_t rows, size_t H, double eps)
{
	double sum = 0;
	for (size_t i = 0; i < rows * H; i++)
		y[i] = NAN;
	cpu_rmsnorm_forward(NULL, ARRAY(y), ARRAY(rho), ARRAY(x), ARRAY(g), rows, H,
		eps);
	for (size_t i = 0; i < rows * H; i++)
		sum += y[i] * dy[i];
	return sum;
}

static void backward(size_t rows, size_t H, double eps)
{
	loss(rows, H, eps);
	cpu_rmsnorm_backward(NULL, ARRAY(dx), ARRAY(dg), ARRAY(dy), ARRAY(x),
		ARRAY(g), ARRAY(rho), rows, H);
}

// test: the gradients of RMSNorm are the differences of its loss
static double loss_of(void *shape)
{
	const size_t *s = shape;
	return loss(s[0], s[1], 1e-5);
}

static void check(real *theta, const real *gradient, size_t n, size_t rows,
                  size_t H)
{
	size_t shape[] = { rows, H };
	for (size_t i = 0; i < n; i++) {
		double want = slope_at(loss_of, shape, theta + i, 0x1p-17 * sqrt(H)),
			got = gradient[i] - 10;
		if (!(fabs(got - want) <= 1e-8 * (1 + fabs(want))))
			fail_msg("H=%zu element %zu: %.12g, not %.12g", H, i, got, want);
	}
}

static void test_differences(void **state)
{
	static const size_t shapes[][2] = {
		{ 1, 1 }, { 3, 2 }, { 5, 7 }, { 2, 130 }, { 1, 768 },
	};
	for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
		size_t rows = shapes[s][0], H = shapes[s][1];
		draw(rows, H, 10);
		backward(rows, H, 1e-5);
		check(x, dx, rows * H, rows, H);
		check(g, dg, H, rows, H);
	}
}

// test: what the gradient has along x
static double along_x(size_t H, double *xv)
{
	double sum = 0;
	*xv = 0;
	for (size_t j = 0; j < H; j++) {
		sum += x[j] * dx[j];
		*xv += x[j] * g[j] * dy[j];
	}
	return sum;
}

static void test_projection(void **state)
{
	enum { H = 97 };
	static const double eps[] = { 0, 1e-5, 0.1, 10 };
	double xv;
	for (int e = 0; e < 4; e++) {
		draw(1, H, 0);
		backward(1, H, eps[e]);
		double r = rho[0], got = along_x(H, &xv);
		assert_true(fabs(got - xv * r * r * r * eps[e]) <= 1e-13 * H);
	}
}

// test: how the gradient scales
static void test_scaling(void **state)
{
	enum { H = 97 };
	real kept[H];
	draw(1, H, 0);
	backward(1, H, 0);
	for (int j = 0; j < H; j++) {
		kept[j] = dx[j];
		dx[j] = dg[j] = 0;
		x[j] *= 1000;
	}
	backward(1, H, 0);
	for (int j = 0; j < H; j++)
		assert_true(fabs(1000 * dx[j] - kept[j]) <= 1e-13);
}

TESTS(
	cmocka_unit_test(test_differences),
	cmocka_unit_test(test_projection),
	cmocka_unit_test(test_scaling))
