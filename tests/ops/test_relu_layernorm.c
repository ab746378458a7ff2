/* ReLU and layer normalisation against finite differences; f64 build */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "ops/cpu/cpu.h"
#include "tests/base/difference.h"
#include "tests/base/program.h"

// a layer norm problem: sizes, inputs, outputs
static Array random_array(size_t n, int stream, double mean, double deviation)
{
	real *x = need(malloc(n * sizeof *x));
	for (size_t i = 0; i < n; i++)
		x[i] = (real)(mean + deviation * random_normal(1, stream, i));
	return (Array){ x, TYPE_REAL };
}

typedef struct LayerNormProblem {
	size_t rows, C;
	Array x, g, b, weight;                  /* inputs; weight = dloss/dy */
	Array y, mean, rstd;
} LayerNormProblem;

static double loss(void *problem)
{
	const LayerNormProblem *p = problem;
	memset(p->y.at, 0xff, p->rows * p->C * sizeof(real));
	cpu_layernorm_forward(NULL, p->y, p->mean, p->rstd, p->x, p->g, p->b,
	                      p->rows, p->C, 1e-5);
	double sum = 0;
	for (size_t i = 0; i < p->rows * p->C; i++)
		sum += (double)((real *)p->y.at)[i] * ((real *)p->weight.at)[i];
	return sum;
}

// compare a gradient with differences of the loss
static void check_gradient(LayerNormProblem *p, Array theta, Array gradient,
	size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double want = slope_at(loss, p, (real *)theta.at + i, 1e-5),
			got = ((real *)gradient.at)[i] - 100;
		if (!(fabs(got - want) <= 1e-7 + 1e-6 * fabs(want)))
			fail_msg("C=%zu element %zu: %.12g, not %.12g", p->C, i, got, want);
	}
}

// test: layer norm's gradients are the differences of its loss
static void try_shape(size_t rows, size_t C)
{
	size_t n = rows * C;
	LayerNormProblem p = { rows, C, random_array(n, 1, 0.5, 2),
		random_array(C, 2, 1, 0.5), random_array(C, 3, 0, 1),
		random_array(n, 4, 0, 1), random_array(n, 5, 0, 1),
		random_array(rows, 6, 0, 1), random_array(rows, 7, 0, 1) };
	Array dx = random_array(n, 8, 100, 0), dg = random_array(C, 8, 100, 0);
	Array db = random_array(C, 8, 100, 0);
	loss(&p);
	cpu_layernorm_backward(NULL, dx, dg, db, p.weight, p.x, p.g, p.mean, p.rstd,
	                       rows, C);
	check_gradient(&p, p.x, dx, n);
	check_gradient(&p, p.g, dg, C);
	check_gradient(&p, p.b, db, C);
	Array all[] = { p.x, p.g, p.b, p.weight, p.y, p.mean, p.rstd, dx, dg, db };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i].at);
}

static void test_layernorm(void **state)
{
	try_shape(3, 1);
	try_shape(1, 2);
	try_shape(4, 7);
	try_shape(3, 33);
	try_shape(2, 130);
}

// test: ReLU at, above and below zero
static void test_relu(void **state)
{
	real x[] = { -2, -0.5, 0, 0.5, 3, NAN }, dy[] = { 1, 2, 3, 4, 5, 6 };
	real y[6], dx[6];
	const real want[] = { 0, 0, 0, 0.5, 3 }, dwant[] = { 0, 0, 0, 4, 5 };
	memset(y, 0xff, sizeof y);
	memset(dx, 0xff, sizeof dx);
	cpu_relu_forward(NULL, (Array){ y, TYPE_REAL }, (Array){ x, TYPE_REAL }, 6);
	cpu_relu_backward(NULL, (Array){ dx, TYPE_REAL }, (Array){ dy, TYPE_REAL },
	                  (Array){ x, TYPE_REAL }, 6);
	for (int i = 0; i < 5; i++)
		assert_true(y[i] == want[i] && dx[i] == dwant[i]);
	assert_true(isnan(y[5]));
}

// test: results are rounded to the type of the output
static void assert_rounded(Array y, size_t n)
{
	const real *v = y.at;
	for (size_t i = 0; i < n; i++)
		assert_true(v[i] == round_to(y.type, (float)v[i]));
}

static void test_output_type(void **state)
{
	size_t C = 50;
	Array x = random_array(C, 1, 0, 1), one = random_array(C, 2, 1, 0);
	Array zero = random_array(C, 3, 0, 0);
	Array y = random_array(C, 4, 0.3, 0);           /* which is no bf16 */
	real statistics[2];
	Array mean = { &statistics[0], TYPE_REAL };
	Array rstd = { &statistics[1], TYPE_REAL };
	y.type = BF16;
	cpu_layernorm_forward(NULL, y, mean, rstd, x, one, zero, 1, C, 1e-5);
	assert_rounded(y, C);
	cpu_relu_forward(NULL, y, x, C);
	assert_rounded(y, C);
	free(x.at), free(one.at), free(zero.at), free(y.at);
}

TESTS(
	cmocka_unit_test(test_layernorm),
	cmocka_unit_test(test_relu),
	cmocka_unit_test(test_output_type))
