#include "ops/cpu/cpu.h"

void cpu_sgd(Device *d, Array w, Array low, Array g, Array velocity, size_t n,
	const SgdStep *step, const int32_t *skip)
{
	real *weight = w.at, *sum = velocity.at;
	const real *grad = g.at;
	SgdStep s = *step;
	if (skip && *skip)
		return;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i++) {
		real by = s.unscale * grad[i];
		if (sum)
			by = sum[i] = s.momentum * sum[i] + by;
		weight[i] -= s.rate * by;
	}
	if (low.at)
		cpu_cast(d, low, w, n);
}
