#include "ops/cpu/cpu.h"

#include <math.h>

void cpu_rmsnorm_forward(Device *d, Array y, Array rho, Array x, Array g,
	size_t rows, size_t C, double eps)
{
	const real *gain = g.at;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++) {
		const real *in = (const real *)x.at + i * C;
		real *out = (real *)y.at + i * C;
		double sum = 0;
		#pragma omp simd reduction(+:sum)
		for (size_t j = 0; j < C; j++)
			sum += (double)in[j] * in[j];
		real r = (real)(1 / sqrt(sum / C + eps));
		((real *)rho.at)[i] = r;
		#pragma omp simd
		for (size_t j = 0; j < C; j++)
			out[j] = in[j] * r * gain[j];
	}
	cpu_round(y, rows * C);
}

// propagate gradients through RMSNorm
void cpu_rmsnorm_backward(Device *d, Array dx, Array dg, Array dy, Array x,
	Array g, Array rho, size_t rows, size_t C)
{
	const real *gain = g.at, *r = rho.at;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++) {
		const real *in = (const real *)x.at + i * C,
			*grad = (const real *)dy.at + i * C;
		real *out = (real *)dx.at + i * C;
		double sum = 0;
		#pragma omp simd reduction(+:sum)
		for (size_t j = 0; j < C; j++)
			sum += (double)in[j] * gain[j] * grad[j];
		real scale = (real)(sum / C) * r[i] * r[i] * r[i];
		#pragma omp simd
		for (size_t j = 0; j < C; j++)
			out[j] += r[i] * gain[j] * grad[j] - in[j] * scale;
	}
	cpu_round(dx, rows * C);
	// sum the gain's gradient over rows, columns divided among threads
	enum { COLUMNS = 64 };
	#pragma omp parallel for schedule(static)
	for (size_t first = 0; first < C; first += COLUMNS) {
		double sum[COLUMNS] = { 0 };
		size_t n = C - first < COLUMNS ? C - first : COLUMNS;
		for (size_t i = 0; i < rows; i++) {
			const real *in = (const real *)x.at + i * C + first,
				*grad = (const real *)dy.at + i * C + first;
			for (size_t j = 0; j < n; j++)
				sum[j] += (double)(r[i] * in[j]) * grad[j];
		}
		for (size_t j = 0; j < n; j++)
			((real *)dg.at)[first + j] += (real)sum[j];
	}
	cpu_round(dg, C);
}
