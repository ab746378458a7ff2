#include "ops/cpu/cpu.h"

#include <math.h>

void cpu_round(Array y, size_t n)
{
	if (y.type != TYPE_REAL)
		round_array(y.type, y.at, n);
}

void cpu_fill(Array y, double value, size_t n)
{
	real *to = y.at;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++)
		to[i] = (real)value;
	cpu_round(y, n);
}

void cpu_cast(Array y, Array x, size_t n)
{
	const real *from = x.at;
	real *to = y.at;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
	if (y.type != x.type)
		cpu_round(y, n);
}

void cpu_add(Array y, Array a, Array b, size_t n)
{
	const real *p = a.at, *q = b.at;
	real *to = y.at;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++)
		to[i] = p[i] + q[i];
	cpu_round(y, n);
}

double cpu_mean(Array x, size_t n)
{
	const real *from = x.at;
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += from[i];
	return sum / n;
}

size_t cpu_count_nonfinite(Array x, size_t n)
{
	const real *from = x.at;
	size_t count = 0;
	#pragma omp parallel for schedule(static) reduction(+:count)
	for (size_t i = 0; i < n; i++)
		count += !isfinite(from[i]);
	return count;
}
