#include "cases/norm_rows.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "bench/harness.h"
#include "ops/array.h"

// draw rows for norms
static Array drawn_array(Device *d, size_t n, Type type, int stream)
{
	Array a = array_new(d, n, type, MEM_TEMPORARY, "norm");
	ops_for(d)->draw(d, a, n, 1, 4, harness_seed, stream, 0);
	return a;
}

// allocate rows for norms
NormRowsCase norm_rows_new(Device *d, size_t rows, size_t C, Type type)
{
	size_t n = rows * C;
	return (NormRowsCase){ .device = d, .ops = ops_for(d), .rows = rows, .C = C,
		.x = drawn_array(d, n, type, 1), .y = drawn_array(d, n, type, 2),
		.dy = drawn_array(d, n, type, 3), .dx = drawn_array(d, n, type, 4),
		.g = drawn_array(d, C, FP32, 5), .b = drawn_array(d, C, FP32, 6),
		.dg = drawn_array(d, C, FP32, 7), .db = drawn_array(d, C, FP32, 8),
		.mean = drawn_array(d, rows, FP32, 9),
		.rho = drawn_array(d, rows, FP32, 10) };
}

// free rows for norms
void norm_rows_free(NormRowsCase *n)
{
	Array all[] = { n->x, n->y, n->dy, n->dx, n->g, n->b, n->dg, n->db, n->mean,
		n->rho };
	for (size_t i = sizeof all / sizeof *all; i-- > 0; )
		device_free(n->device, all[i].at);
}

// pass over rows by the eager norms
void norm_rows_rmsnorm(void *rows)
{
	const NormRowsCase *n = rows;
	n->ops->rmsnorm_forward(n->device, n->y, n->rho, n->x, n->g, n->rows, n->C,
		ROWS_EPS);
}

void norm_rows_rmsnorm_back(void *rows)
{
	const NormRowsCase *n = rows;
	n->ops->rmsnorm_backward(n->device, n->dx, n->dg, n->dy, n->x, n->g, n->rho,
		n->rows, n->C);
}

void norm_rows_layernorm(void *rows)
{
	const NormRowsCase *n = rows;
	n->ops->layernorm_forward(n->device, n->y, n->mean, n->rho, n->x, n->g, n->b,
		n->rows, n->C, ROWS_EPS);
}

void norm_rows_layernorm_back(void *rows)
{
	const NormRowsCase *n = rows;
	n->ops->layernorm_backward(n->device, n->dx, n->dg, n->db, n->dy, n->x, n->g,
		n->mean, n->rho, n->rows, n->C);
}

// compare rows with the formulas of a norm
/* y, dx: (C), what the norm and its gradient are of one row x, dy: (C) */
static void norm_by_formula(double *y, double *dx, const real *x, const real *dy,
	const real *g, const real *b, size_t C, bool centers)
{
	double mean = 0, square = 0, v_mean = 0, v_along = 0;
	for (size_t j = 0; j < C; j++)
		mean += centers ? (double)x[j] / C : 0;
	for (size_t j = 0; j < C; j++)
		square += (x[j] - mean) * (x[j] - mean) / C;
	double rho = 1 / sqrt(square + ROWS_EPS);
	for (size_t j = 0; j < C; j++) {
		double v = (double)g[j] * dy[j] / C;
		v_mean += centers ? v : 0;
		v_along += v * (x[j] - mean) * rho;
	}
	for (size_t j = 0; j < C; j++) {
		double unit = (x[j] - mean) * rho;
		y[j] = g[j] * unit + (centers ? b[j] : 0);
		dx[j] = rho * ((double)g[j] * dy[j] - v_mean - unit * v_along);
	}
}

// expect a row to be what the formula says
static void expect_row(Device *d, Array got, const double *want, size_t row,
	size_t C, const char *name)
{
	real *have = need(malloc(C * sizeof *have));
	array_read(d, have, array_part(d, got, row * C), C);
	const double bound = got.type == FP32 ? 1e-4 : 2e-2;
	for (size_t j = 0; j < C; j++)
		if (!(fabs(have[j] - want[j]) <= bound * (1 + fabs(want[j]))))
			die("%s: element %zu of row %zu is %g, not %g", name, j, row,
				(double)have[j], want[j]);
	free(have);
}

real *norm_row(Device *d, Array a, size_t row, size_t C)
{
	real *values = need(malloc(C * sizeof *values));
	array_read(d, values, array_part(d, a, row * C), C);
	return values;
}

// check three rows of a norm
void norm_rows_check(const NormRowsCase *n, bool centers, const char *name)
{
	Device *d = n->device;
	const size_t C = n->C, some[] = { 0, n->rows / 2, n->rows - 1 };
	double *y = need(malloc(C * sizeof *y)), *dx = need(malloc(C * sizeof *dx));
	real *g = norm_row(d, n->g, 0, C), *b = norm_row(d, n->b, 0, C);
	for (int i = 0; i < 3; i++) {
		real *x = norm_row(d, n->x, some[i], C);
		real *dy = norm_row(d, n->dy, some[i], C);
		norm_by_formula(y, dx, x, dy, g, b, C, centers);
		expect_row(d, n->y, y, some[i], C, name);
		expect_row(d, n->dx, dx, some[i], C, name);
		free(x);
		free(dy);
	}
	free(y);
	free(dx);
	free(g);
	free(b);
}
