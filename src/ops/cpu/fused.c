#include "ops/cpu/cpu.h"

#include <stdlib.h>

#include "base/error.h"

void cpu_fused_rmsnorm_forward(Device *d, Array y, Array rho, Array sum, Array x,
	Array branch, Array g, size_t rows, size_t C, double eps)
{
	if (branch.at)
		cpu_add(d, sum, x, branch, rows * C);
	cpu_rmsnorm_forward(d, y, rho, branch.at ? sum : x, g, rows, C, eps);
}

void cpu_fused_rmsnorm_backward(Device *d, NormBackward b, size_t rows, size_t C)
{
	if (b.fresh)
		cpu_fill(d, b.dsum, 0, rows * C);
	if (b.beta == 0)
		cpu_fill(d, b.dg, 0, C);
	cpu_rmsnorm_backward(d, b.dsum, b.dg, b.dy, b.sum, b.g, b.rho, rows, C);
	if (b.copy.at)
		cpu_cast(d, b.copy, b.dsum, rows * C);
	if (b.y.at == NULL)
		return;
	const real *x = b.sum.at, *gain = b.g.at, *r = b.rho.at;
	real *y = b.y.at;
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < C; j++)
			y[i * C + j] = x[i * C + j] * r[i] * gain[j];
	cpu_round(b.y, rows * C);
}
void cpu_fused_rope(Device *d, Array qkv, Array cosine, Array sine, size_t B,
	size_t T, size_t H, size_t D, int direction)
{
	#pragma omp parallel for schedule(static)
	for (size_t row = 0; row < B * T; row++) {
		Array qk = array_at(qkv, row * 3 * H * D);
		size_t at = row % T * (D / 2);
		cpu_rope(d, qk, qk, array_at(cosine, at), array_at(sine, at), 1, 1, 2 * H,
			D, direction);
	}
}
void cpu_fused_swiglu_forward(Device *d, Array h, Array ab, size_t rows, size_t F)
{
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < rows; i++)
		cpu_swiglu_forward(d, array_at(h, i * F), array_at(ab, 2 * i * F),
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
		cpu_swiglu_forward(d, (Array){ again, h.type }, a, b, F);
		cpu_swiglu_backward(d, da, db, in, a, b, F);
		cpu_cast(d, out, (Array){ again, h.type }, F);
		free(again);
	}
}
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
	cpu_adamw(d, w, sum, m, v, n, step, NULL);
	if (low.at)
		cpu_cast(d, low, w, n);
	if (g.n > 1)
		free(sum.at);
}
