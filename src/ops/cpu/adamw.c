#include "ops/cpu/cpu.h"

#include <math.h>

void cpu_adamw(Array w, Array g, Array m, Array v, size_t n, AdamWStep step)
{
	real *weight = w.at, *first = m.at, *second = v.at;
	const real *grad = g.at;
	real b1 = (real)step.beta1, b2 = (real)step.beta2, eps = (real)step.eps;
	real c1 = (real)(1 - step.beta1), c2 = (real)(1 - step.beta2);
	real keep = (real)(1 - step.lr * step.decay);
	real rate = (real)(step.lr * sqrt(1 - pow(step.beta2, step.t))
		/ (1 - pow(step.beta1, step.t)));
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++) {
		first[i] = b1 * first[i] + c1 * grad[i];
		second[i] = b2 * second[i] + c2 * grad[i] * grad[i];
		weight[i] = weight[i] * keep
			- rate * first[i] / (REAL_SQRT(second[i]) + eps);
	}
}
