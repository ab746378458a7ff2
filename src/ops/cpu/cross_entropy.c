#include "ops/cpu/cpu.h"

#include <math.h>

#include "ops/cpu/exponential.h"

void cpu_cross_entropy_forward(Device *d, Array losses, Array lse, Array logits,
	const int32_t *targets, size_t N, size_t V)
{
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < N; i++) {
		const real *z = (const real *)logits.at + i * V;
		real largest;
		double sum = row_exponentials(z, V, &largest), l = largest + log(sum);
		((real *)lse.at)[i] = (real)l;
		((real *)losses.at)[i] = (real)(l - z[targets[i]]);
	}
}

// write the gradient of the loss
void cpu_cross_entropy_backward(Device *d, Array dlogits, Array logits, Array lse,
	const int32_t *targets, double scale, size_t N,
	size_t V)
{
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < N; i++) {
		const real *z = (const real *)logits.at + i * V;
		real *dz = (real *)dlogits.at + i * V, l = ((const real *)lse.at)[i],
			factor = (real)scale;
		#pragma omp simd
		for (size_t v = 0; v < V; v++)
			dz[v] = exponential(z[v] - l) * factor;
		dz[targets[i]] -= factor;
	}
	cpu_round(dlogits, N * V);
}
