#include "ops/cpu/cpu.h"

#include <math.h>

#include "ops/cpu/exponential.h"

// find the terms of each row
void cpu_partial_cross_entropy(Device *d, Array terms, Array logits,
	const int32_t *targets, size_t N, size_t V)
{
	real *most = terms.at, *sums = most + N, *wanted = sums + N;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < N; i++) {
		const real *z = (const real *)logits.at + i * V;
		sums[i] = (real)row_exponentials(z, V, &most[i]);
		wanted[i] = targets[i] >= 0 ? z[targets[i]] : 0;
	}
}

// join the terms of a row
/* the loss; t: the row's terms of rank 0, N elements from one to the next */
static real join_terms(const real *t, size_t N, int ranks, real *logsumexp)
{
	real most = t[0];
	double sum = 0, wanted = 0;
	for (int r = 1; r < ranks; r++)
		most = t[3 * N * r] > most ? t[3 * N * r] : most;
	for (int r = 0; r < ranks; r++) {
		sum += t[3 * N * r + N] * exp(t[3 * N * r] - most);
		wanted += t[3 * N * r + 2 * N];
	}
	double l = most + log(sum);
	*logsumexp = (real)l;
	return (real)(l - wanted);
}

// find losses and gradients from joined terms
void cpu_joined_cross_entropy(Device *d, Array losses, Array dlogits,
	Array logits, Array terms, int ranks, const int32_t *targets, double scale,
	size_t N, size_t V)
{
	real factor = (real)scale;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < N; i++) {
		const real *z = (const real *)logits.at + i * V;
		real *dz = (real *)dlogits.at + i * V, l;
		((real *)losses.at)[i] = join_terms((const real *)terms.at + i, N, ranks,
			&l);
		if (dlogits.at == NULL)
			continue;
		#pragma omp simd
		for (size_t v = 0; v < V; v++)
			dz[v] = exponential(z[v] - l) * factor;
		if (targets[i] >= 0)
			dz[targets[i]] -= factor;
	}
	if (dlogits.at)
		cpu_round(dlogits, N * V);
}
