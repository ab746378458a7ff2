#include "ops/cpu/cpu.h"

void cpu_rope_row(Array y, Array x, Array cosine, Array sine, size_t H, size_t D,
	int direction)
{
	const real *c = cosine.at, *s = sine.at, *in = x.at;
	real *out = y.at;
	for (size_t h = 0; h < H; h++, in += D, out += D)
		for (size_t i = 0; i < D / 2; i++) {
			real even = in[2 * i], odd = in[2 * i + 1],
				rotation = direction * s[i];
			out[2 * i] = c[i] * even - rotation * odd;
			out[2 * i + 1] = rotation * even + c[i] * odd;
		}
	cpu_round(y, H * D);
}

void cpu_rope(Device *d, Array y, Array x, Array cosine, Array sine, size_t B,
	size_t T, size_t H, size_t D, int direction)
{
	#pragma omp parallel for schedule(static)
	for (size_t row = 0; row < B * T; row++)
		cpu_rope_row(array_at(y, row * H * D), array_at(x, row * H * D),
			array_at(cosine, row % T * (D / 2)), array_at(sine, row % T
			* (D / 2)), H, D, direction);
}
