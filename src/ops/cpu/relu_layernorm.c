#include "ops/cpu/cpu.h"

#include <math.h>

// clip at zero, forward and backward
void cpu_relu_forward(Device *d, Array y, Array x, size_t n)
{
	const real *in = x.at;
	real *out = y.at;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++)
		out[i] = in[i] < 0 ? 0 : in[i];
	cpu_round(y, n);
}

void cpu_relu_backward(Device *d, Array dx, Array dy, Array x, size_t n)
{
	const real *in = x.at, *grad = dy.at;
	real *out = dx.at;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++)
		out[i] = in[i] > 0 ? grad[i] : 0;
	cpu_round(dx, n);
}

// find the mean and the reciprocal deviation of a row
static void row_statistics(real *mean, real *rstd, const real *x, size_t C,
                           double eps)
{
	double sum = 0, squares = 0;
	#pragma omp simd reduction(+:sum)
	for (size_t j = 0; j < C; j++)
		sum += x[j];
	double m = sum / C;
	#pragma omp simd reduction(+:squares)
	for (size_t j = 0; j < C; j++)
		squares += (x[j] - m) * (x[j] - m);
	*mean = (real)m;
	*rstd = (real)(1 / sqrt(squares / C + eps));
}

// normalise, scale and shift each row
void cpu_layernorm_forward(Device *d, Array y, Array mean, Array rstd, Array x,
	Array g, Array b, size_t rows, size_t C, double eps)
{
	const real *gain = g.at, *shift = b.at;
	real *m = mean.at, *r = rstd.at;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++) {
		const real *in = (const real *)x.at + i * C;
		real *out = (real *)y.at + i * C;
		row_statistics(&m[i], &r[i], in, C, eps);
		for (size_t j = 0; j < C; j++)
			out[j] = (in[j] - m[i]) * r[i] * gain[j] + (shift ? shift[j] : 0);
	}
	cpu_round(y, rows * C);
}

// propagate gradients through layer normalisation
void cpu_layernorm_backward(Device *d, Array dx, Array dg, Array db, Array dy,
	Array x, Array g, Array mean, Array rstd, size_t rows, size_t C)
{
	const real *gain = g.at, *m = mean.at, *r = rstd.at;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++) {
		const real *in = (const real *)x.at + i * C;
		const real *grad = (const real *)dy.at + i * C;
		real *out = (real *)dx.at + i * C;
		// add row i's gradient to out
		double along_one = 0, along_x = 0;     /* sums of v and of v * xhat */
		#pragma omp simd reduction(+:along_one, along_x)
		for (size_t j = 0; j < C; j++) {
			double v = (double)gain[j] * grad[j];
			along_one += v;
			along_x += v * ((in[j] - m[i]) * r[i]);
		}
		real v_mean = (real)(along_one / C), vx_mean = (real)(along_x / C);
		for (size_t j = 0; j < C; j++) {
			real xhat = (in[j] - m[i]) * r[i];
			out[j] += r[i] * (gain[j] * grad[j] - v_mean - xhat * vx_mean);
		}
	}
	cpu_round(dx, rows * C);
	// sum the gradients of gain and shift over the rows
	enum { COLUMNS = 64 };
	#pragma omp parallel for schedule(static)
	for (size_t first = 0; first < C; first += COLUMNS) {
		double gain_sum[COLUMNS] = { 0 }, shift_sum[COLUMNS] = { 0 };
		size_t n = C - first < COLUMNS ? C - first : COLUMNS;
		for (size_t i = 0; i < rows; i++) {
			const real *in = (const real *)x.at + i * C + first,
				*grad = (const real *)dy.at + i * C + first;
			for (size_t j = 0; j < n; j++) {
				double slope = grad[j], deviation = in[j] - m[i];
				gain_sum[j] += slope * deviation * r[i];
				shift_sum[j] += slope;
			}
		}
		for (size_t j = 0; j < n; j++) {
			((real *)dg.at)[first + j] += (real)gain_sum[j];
			if (db.at)
				((real *)db.at)[first + j] += (real)shift_sum[j];
		}
	}
	cpu_round(dg, C);
	if (db.at)
		cpu_round(db, C);
}
