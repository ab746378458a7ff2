#include "ops/cpu/cpu.h"

#include "ops/cpu/exponential.h"

static real sigmoid(real x)
{
	return 1 / (1 + exponential(-x));
}

void cpu_swiglu_forward_row(Array h, Array a, Array b, size_t n)
{
	const real *gate = a.at, *up = b.at;
	real *out = h.at;
	#pragma omp simd
	for (size_t i = 0; i < n; i++)
		out[i] = gate[i] * sigmoid(gate[i]) * up[i];
	cpu_round(h, n);
}

// propagate gradients through SwiGLU
void cpu_swiglu_backward_row(Array da, Array db, Array dh, Array a, Array b,
	size_t n)
{
	const real *gate = a.at, *up = b.at, *grad = dh.at;
	real *dgate = da.at, *dup = db.at;
	#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		real x = gate[i], y = up[i], s = sigmoid(x), g = grad[i];
		dup[i] = g * x * s;
		dgate[i] = g * y * s * (1 + x * (1 - s));
	}
	cpu_round(da, n);
	cpu_round(db, n);
}

// share SwiGLU among threads
enum { ROW = 1 << 12 };

static size_t row_from(size_t i, size_t n)
{
	return n - i < ROW ? n - i : ROW;
}

void cpu_swiglu_forward(Device *d, Array h, Array a, Array b, size_t n)
{
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i += ROW)
		cpu_swiglu_forward_row(array_at(h, i), array_at(a, i), array_at(b, i),
			row_from(i, n));
}

void cpu_swiglu_backward(Device *d, Array da, Array db, Array dh, Array a,
	Array b, size_t n)
{
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i += ROW)
		cpu_swiglu_backward_row(array_at(da, i), array_at(db, i), array_at(dh,
			i), array_at(a, i), array_at(b, i), row_from(i, n));
}
