#include "ops/cpu/cpu.h"

#include <math.h>

#include "ops/cpu/exponential.h"

void cpu_softmax_forward(Device *d, Array P, Array S, double scale,
	size_t matrices, size_t T)
{
	#pragma omp parallel for schedule(static)
	for (size_t row = 0; row < matrices * T; row++) {
		const real *s = (const real *)S.at + row * T;
		real *p = (real *)P.at + row * T, factor = (real)scale;
		size_t n = row % T + 1;
		real largest = row_max(s, n);
		largest = finite_base(largest);
		double sum = 0;
		#pragma omp simd reduction(+:sum)
		for (size_t j = 0; j < n; j++)
			sum += p[j] = exponential((s[j] - largest) * factor);
		real inverse = sum == 0 ? 0 : (real)(1 / sum);
		for (size_t j = 0; j < T; j++)
			p[j] = j < n ? p[j] * inverse : 0;
	}
	cpu_round(P, matrices * T * T);
}

// propagate gradients through softmax
void cpu_softmax_backward(Device *d, Array dS, Array dP, Array P, double scale,
	size_t matrices, size_t T)
{
	#pragma omp parallel for schedule(static)
	for (size_t row = 0; row < matrices * T; row++) {
		const real *p = (const real *)P.at + row * T,
			*dp = (const real *)dP.at + row * T;
		real *ds = (real *)dS.at + row * T, factor = (real)scale;
		size_t n = row % T + 1;
		double sum = 0;
		#pragma omp simd reduction(+:sum)
		for (size_t j = 0; j < n; j++)
			sum += (double)p[j] * dp[j];
		real dot = (real)sum;
		for (size_t j = 0; j < T; j++)
			ds[j] = j < n ? p[j] * (dp[j] - dot) * factor : 0;
	}
	cpu_round(dS, matrices * T * T);
}
