#include "ops/cpu/cpu.h"

#include <string.h>

void cpu_embedding_forward(Device *d, Array x, Array table, const int32_t *tokens,
	size_t N, size_t C)
{
	real *to = x.at;
	const real *rows = table.at;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < N; i++)
		if (tokens[i] >= 0)
			memcpy(to + i * C, rows + tokens[i] * C, C * sizeof *to);
		else
			memset(to + i * C, 0, C * sizeof *to);
	cpu_round(x, N * C);
}

// add the gradients of tokens to the table
void cpu_embedding_backward(Device *d, Array dtable, double beta, Array dx,
	const int32_t *tokens, size_t N, size_t C, size_t V)
{
	enum { COLUMNS = 64 };
	if (beta == 0)
		cpu_fill(d, dtable, 0, V * C);
	real *rows = dtable.at;
	const real *from = dx.at;
	#pragma omp parallel for schedule(static)
	for (size_t first = 0; first < C; first += COLUMNS)
		for (size_t i = 0; i < N; i++)
			for (size_t c = first; tokens[i] >= 0 && c < first + COLUMNS && c < C;
				c++)
				rows[tokens[i] * C + c] += from[i * C + c];
	cpu_round(dtable, V * C);
}
