#include "ops/cpu/cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// copy rows that are apart
static void copy_rows(real *to, size_t to_row, const real *from, size_t from_row,
	size_t rows, size_t C)
{
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++)
		memcpy(to + i * to_row, from + i * from_row, C * sizeof *to);
}

/* a itself if its rows are dense (row is C or 0), else a dense copy */
static Array pack_rows(Array a, size_t row, size_t rows, size_t C)
{
	if (row == 0 || row == C)
		return a;
	Array dense = { need(malloc(rows * C * sizeof(real))), a.type };
	copy_rows(dense.at, C, a.at, row, rows, C);
	return dense;
}

/* if dense is a copy of a, copies it back to a's rows */
static void unpack_rows(Array a, size_t row, Array dense, size_t rows, size_t C)
{
	if (dense.at != a.at)
		copy_rows(a.at, row, dense.at, C, rows, C);
}

/* frees dense if it is a copy of a */
static void free_if_copied(Array a, Array dense)
{
	if (dense.at != a.at)
		free(dense.at);
}

/* y = g x rho, for each row of x */
static void recompute_output(Array y, Array x, Array rho, Array g, size_t rows,
	size_t C)
{
	const real *in = x.at, *gain = g.at, *r = rho.at;
	real *out = y.at;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < C; j++)
			out[i * C + j] = in[i * C + j] * r[i] * gain[j];
	cpu_round(y, rows * C);
}

size_t cpu_rmsnorm_scratch(Device *d, const NormBackward *b, size_t rows,
	size_t C)
{
	return 0;
}

void cpu_fused_rmsnorm_forward(Device *d, NormForward f, size_t rows, size_t C)
{
	Array x = pack_rows(f.x, f.x_row, rows, C);
	Array y = pack_rows(f.y, f.y_row, rows, C), rho = f.rho;
	if (rho.at == NULL)
		rho = (Array){ need(malloc(rows * sizeof(real))), TYPE_REAL };
	if (f.branch.at)
		cpu_add(d, f.sum, x, f.branch, rows * C);
	cpu_rmsnorm_forward(d, y, rho, f.branch.at ? f.sum : x, f.g, rows, C, f.eps);
	if (f.rho.at == NULL)
		free(rho.at);
	unpack_rows(f.y, f.y_row, y, rows, C);
	free_if_copied(f.x, x);
	free_if_copied(f.y, y);
}

// propagate through the norm of rows
static Array rms_factors(Array x, size_t rows, size_t C, double eps)
{
	real *rho = need(malloc(rows * sizeof *rho));
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++) {
		const real *row = (const real *)x.at + i * C;
		double sum = 0;
		for (size_t j = 0; j < C; j++)
			sum += (double)row[j] * row[j];
		rho[i] = (real)(1 / sqrt(sum / C + eps));
	}
	return (Array){ rho, TYPE_REAL };
}

void cpu_fused_rmsnorm_backward(Device *d, NormBackward b, size_t rows, size_t C)
{
	Array sum = pack_rows(b.sum, b.x_row, rows, C);
	Array dy = pack_rows(b.dy, b.dy_row, rows, C);
	Array dsum = pack_rows(b.dsum, b.dx_row, rows, C);
	Array rho = b.rho.at ? b.rho : rms_factors(sum, rows, C, b.eps);
	if (b.fresh)
		cpu_fill(d, dsum, 0, rows * C);
	if (b.beta == 0)
		cpu_fill(d, b.dg, 0, C);
	cpu_rmsnorm_backward(d, dsum, b.dg, dy, sum, b.g, rho, rows, C);
	if (b.copy.at)
		cpu_cast(d, b.copy, dsum, rows * C);
	if (b.y.at)
		recompute_output(b.y, sum, rho, b.g, rows, C);
	unpack_rows(b.dsum, b.dx_row, dsum, rows, C);
	free_if_copied(b.sum, sum);
	free_if_copied(b.dy, dy);
	free_if_copied(b.dsum, dsum);
	if (b.rho.at == NULL)
		free(rho.at);
}

// rotate queries and keys beside values
void cpu_fused_rope(Device *d, Array qkv, Array cosine, Array sine, size_t B,
	size_t T, size_t H, size_t D, int direction)
{
	#pragma omp parallel for schedule(static)
	for (size_t row = 0; row < B * T; row++) {
		Array qk = array_at(qkv, row * 3 * H * D);
		size_t at = row % T * (D / 2);
		cpu_rope_row(qk, qk, array_at(cosine, at), array_at(sine, at), 2 * H, D,
			direction);
	}
}

// gate beside up: SwiGLU, forward and backward
void cpu_fused_swiglu_forward(Device *d, Array h, Array ab, size_t rows, size_t F)
{
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++)
		cpu_swiglu_forward_row(array_at(h, i * F), array_at(ab, 2 * i * F),
			array_at(ab, (2 * i + 1) * F), F);
}

void cpu_fused_swiglu_backward(Device *d, Array dab, Array h, Array dh, Array ab,
	size_t rows, size_t F)
{
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++) {
		Array a = array_at(ab, 2 * i * F), b = array_at(ab, (2 * i + 1) * F);
		Array da = array_at(dab, 2 * i * F), db = array_at(dab, (2 * i + 1) * F);
		Array out = array_at(h, i * F), in = array_at(dh, i * F);
		real *again = need(malloc(F * sizeof *again));
		cpu_swiglu_forward_row((Array){ again, h.type }, a, b, F);
		cpu_swiglu_backward_row(da, db, in, a, b, F);
		memcpy(out.at, again, F * sizeof *again);
		free(again);
	}
}

// find loss and gradient, or update weights and copies
void cpu_fused_cross_entropy(Device *d, Array losses, Array dlogits, Array logits,
	const int32_t *targets, double scale, size_t N, size_t V)
{
	Array lse = { need(malloc(N * sizeof(real))), TYPE_REAL };
	cpu_cross_entropy_forward(d, losses, lse, logits, targets, N, V);
	if (dlogits.at)
		cpu_cross_entropy_backward(d, dlogits, logits, lse, targets, scale, N, V);
	free(lse.at);
}

void cpu_fused_adamw(Device *d, Array w, Array low, Gradients g, Array m,
	Array v, size_t n, const AdamWStep *step, const int32_t *skip)
{
	if (skip && *skip)
		return;
	Array sum = cpu_sum_gradients(d, g, n);
	cpu_adamw(d, w, low, sum, m, v, n, step, NULL);
	if (g.n > 1)
		free(sum.at);
}
