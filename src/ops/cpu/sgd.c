#include "ops/cpu/cpu.h"

#include <stdlib.h>

#include "base/error.h"

// sum gradients
Array cpu_sum_gradients(Device *d, Gradients g, size_t n)
{
	if (g.n == 1)
		return g.at[0];
	Array sum = { need(malloc(n * sizeof(real))), TYPE_REAL };
	cpu_add(d, sum, g.at[0], g.at[1], n);
	for (int k = 2; k < g.n; k++)
		cpu_add(d, sum, sum, g.at[k], n);
	return sum;
}

// update weights by SGD
void cpu_sgd(Device *d, Array w, Array low, Gradients g, Array velocity, size_t n,
	const SgdStep *step, const int32_t *skip)
{
	real *weight = w.at, *sum = velocity.at;
	SgdStep s = *step;
	if (skip && *skip)
		return;
	Array summed = cpu_sum_gradients(d, g, n);
	const real *grad = summed.at;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i++) {
		real by = s.unscale * grad[i];
		if (sum)
			by = sum[i] = s.momentum * sum[i] + by;
		weight[i] -= s.rate * by;
	}
	cpu_round(w, n);
	if (sum)
		cpu_round(velocity, n);
	if (low.at)
		cpu_cast(d, low, w, n);
	if (g.n > 1)
		free(summed.at);
}
