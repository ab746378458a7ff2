#include "ops/cpu/cpu.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"

enum { PIECE = 1 << 14 };

void cpu_add_squares(Device *d, Array sum, Gradients g, size_t n)
{
	size_t pieces = (n + PIECE - 1) / PIECE;
	double *of = need(malloc(pieces * sizeof *of)), all = *(real *)sum.at;
	Array summed = cpu_sum_gradients(d, g, n);
	const real *x = summed.at;
	#pragma omp parallel for schedule(static)
	for (size_t p = 0; p < pieces; p++) {
		of[p] = 0;
		for (size_t i = p * PIECE; i < n && i < (p + 1) * PIECE; i++)
			of[p] += (double)x[i] * x[i];
	}
	for (size_t p = 0; p < pieces; p++)
		all += of[p];
	*(real *)sum.at = (real)all;
	free(of);
	if (g.n > 1)
		free(summed.at);
}

// shrink the factor of the gradients
void cpu_clip(Device *d, real *factor, Array squares, double most)
{
	double norm = fabs(*factor) * sqrt(*(const real *)squares.at),
		by = most / (norm + 1e-6);
	if (by < 1)
		*factor *= (real)by;
}
