#include "ops/cpu/cpu.h"

#include <math.h>

void cpu_adamw(Device *d, Array w, Array low, Array g, Array m, Array v,
	size_t n, const AdamWStep *step, const int32_t *skip)
{
	real *weight = w.at, *first = m.at, *second = v.at;
	const real *grad = g.at;
	AdamWStep s = *step;
	if (skip && *skip)
		return;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++) {
		real d = grad[i] * s.unscale;
		first[i] = s.beta1 * first[i] + s.one_minus_beta1 * d;
		second[i] = s.beta2 * second[i] + s.one_minus_beta2 * d * d;
		weight[i] = weight[i] * s.keep
			- s.rate * first[i] / (REAL_SQRT(second[i]) + s.eps);
	}
	cpu_round(w, n);
	cpu_round(m, n);
	cpu_round(v, n);
	if (low.at)
		cpu_cast(d, low, w, n);
}
