#include "ops/cpu/cpu.h"

#include "ops/cpu/exponential.h"

static real sigmoid(real x)
{
	return 1 / (1 + exponential(-x));
}

void cpu_swiglu_forward(Device *d, Array h, Array a, Array b, size_t n)
{
	const real *gate = a.at, *up = b.at;
	real *out = h.at;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++)
		out[i] = gate[i] * sigmoid(gate[i]) * up[i];
	cpu_round(h, n);
}

// propagate gradients through SwiGLU
void cpu_swiglu_backward(Device *d, Array da, Array db, Array dh, Array a,
	Array b, size_t n)
{
	const real *gate = a.at, *up = b.at, *grad = dh.at;
	real *dgate = da.at, *dup = db.at;
	#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++) {
		real x = gate[i], y = up[i], s = sigmoid(x), g = grad[i];
		dup[i] = g * x * s;
		dgate[i] = g * y * s * (1 + x * (1 - s));
	}
	cpu_round(da, n);
	cpu_round(db, n);
}
