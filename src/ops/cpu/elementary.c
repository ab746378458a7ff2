#include "ops/cpu/cpu.h"

#include <math.h>

#include "base/random.h"

void cpu_round(Array y, size_t n)
{
	if (y.type != TYPE_REAL)
		round_array(y.type, y.at, n);
}

void cpu_fill(Device *d, Array y, double value, size_t n)
{
	real *to = y.at;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++)
		to[i] = (real)value;
	cpu_round(y, n);
}

void cpu_draw(Device *d, Array y, size_t n, double sd, double bound,
	uint64_t seed, uint64_t stream, uint64_t first)
{
	real *to = y.at;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i++)
		to[i] = (real)(sd * random_truncated(seed, stream, first + i, bound));
	cpu_round(y, n);
}

// copy, convert and add arrays
bool cpu_reads(Device *d, Type stored, Type wanted)
{
	return stored == wanted;
}

void cpu_cast(Device *d, Array y, Array x, size_t n)
{
	const real *from = x.at;
	real *to = y.at;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
	if (y.type != x.type)
		cpu_round(y, n);
}

void cpu_add(Device *d, Array y, Array a, Array b, size_t n)
{
	const real *p = a.at, *q = b.at;
	real *to = y.at;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++)
		to[i] = p[i] + q[i];
	cpu_round(y, n);
}

// reduce an array to one number
void cpu_mean(Device *d, Array mean, int32_t *nonfinite, Array x, size_t n)
{
	const real *from = x.at;
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += from[i];
	*(real *)mean.at = (real)(sum / n);
	*nonfinite = !isfinite(sum);
}

void cpu_count_nonfinite(Device *d, int32_t *count, Array x, size_t n)
{
	const real *from = x.at;
	int32_t found = 0;
	#pragma omp parallel for schedule(static) reduction(+:found)
	for (size_t i = 0; i < n; i++)
		found += !isfinite(from[i]);
	*count += found;
}
