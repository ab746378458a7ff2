#include "ops/cpu/cpu.h"

void cpu_rope(Device *d, Array y, Array x, Array cosine, Array sine, size_t B,
	size_t T, size_t H, size_t D, int direction)
{
	size_t half = D / 2;
	#pragma omp parallel for schedule(static)
	for (size_t row = 0; row < B * T; row++) {
		const real *c = (const real *)cosine.at + row % T * half,
			*s = (const real *)sine.at + row % T * half;
		for (size_t h = 0; h < H; h++) {
			const real *in = (const real *)x.at + (row * H + h) * D;
			real *out = (real *)y.at + (row * H + h) * D;
			for (size_t i = 0; i < half; i++) {
				real even = in[2 * i], odd = in[2 * i + 1],
					rotation = direction * s[i];
				out[2 * i] = c[i] * even - rotation * odd;
				out[2 * i + 1] = rotation * even + c[i] * odd;
			}
		}
	}
	cpu_round(y, B * T * H * D);
}
