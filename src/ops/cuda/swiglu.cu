/* swiglu.cu: h = a sigmoid(a) b, forward and backward */
#include "ops/cuda/gate.cuh"

enum { THREADS = 128 };

// gate a row
/* h = a sigmoid(a) b; ab: (rows, 2, F), a before b; h: (rows, F); of E
 * bytes a row: 3 F sizeof(E); 5 F FLOPs and F exponentials
 * grid: F / (128 N) x rows, block 128 */
template <class E, int N>
__global__ __launch_bounds__(THREADS) void gate(E *h, const E *ab, size_t rows,
	size_t F)
{
	const size_t j = (blockIdx.x * (size_t)THREADS + threadIdx.x) * N;
	if (j >= F)
		return;
	for (size_t row = blockIdx.y; row < rows; row += gridDim.y) {
		float a[N], b[N];
		load(a, ab + 2 * row * F + j);
		load(b, ab + (2 * row + 1) * F + j);
		#pragma unroll
		for (int i = 0; i < N; i++)
			a[i] = gated(a[i], b[i]);
		store(h + row * F + j, a);
	}
}

// propagate gradients through the gate
/* da = dh b s (1 + a (1 - s)), db = dh a s, h = a s b, s = sigmoid(a)
 * dab (may be ab), ab: (rows, 2, F); h (may be dh), dh: (rows, F); of E
 * bytes a row: 6 F sizeof(E); 12 F FLOPs and F exponentials
 * grid: F / (128 N) x rows, block 128 */
template <class E, int N>
__global__ __launch_bounds__(THREADS) void gate_gradient(E *dab, E *h,
	const E *dh, const E *ab, size_t rows, size_t F)
{
	const size_t j = (blockIdx.x * (size_t)THREADS + threadIdx.x) * N;
	if (j >= F)
		return;
	for (size_t row = blockIdx.y; row < rows; row += gridDim.y) {
		const size_t at_a = 2 * row * F + j, at_b = at_a + F;
		float a[N], b[N], d[N];
		load(a, ab + at_a);
		load(b, ab + at_b);
		load(d, dh + row * F + j);
		#pragma unroll
		for (int i = 0; i < N; i++) {
			const GateGradient g = gate_gradient_of(a[i], b[i], d[i]);
			a[i] = g.a;
			b[i] = g.b;
			d[i] = g.h;
		}
		store(dab + at_a, a);
		store(dab + at_b, b);
		store(h + row * F + j, d);
	}
}

// launch the fused SwiGLU
static dim3 grid_over(size_t rows, size_t F, int N)
{
	return dim3(blocks_for(F, (size_t)THREADS * N),
		blocks_for(rows < 65535 ? rows : 65535, 1));
}

extern "C" void cuda_fused_swiglu_forward(Device *d, Array h, Array ab,
	size_t rows, size_t F)
{
	assert(h.type == ab.type);
	with_type(h.type, [&](auto e) {
		using E = decltype(e);
		constexpr int N = 16 / sizeof(E);
		const bool wide = F % N == 0 && packs(h, N) && packs(ab, N);
		const auto kernel = wide ? gate<E, N> : gate<E, 1>;
		kernel<<<grid_over(rows, F, wide ? N : 1), THREADS, 0, cuda_stream(d)>>>(
			(E *)h.at, (const E *)ab.at, rows, F);
	});
	LAUNCHED();
}

extern "C" void cuda_fused_swiglu_backward(Device *d, Array dab, Array h,
	Array dh, Array ab, size_t rows, size_t F)
{
	assert(dab.type == ab.type && h.type == ab.type && dh.type == ab.type);
	with_type(h.type, [&](auto e) {
		using E = decltype(e);
		constexpr int N = 4;
		const bool wide = F % N == 0 && packs(dab, N) && packs(h, N)
			&& packs(dh, N) && packs(ab, N);
		const auto kernel = wide ? gate_gradient<E, N> : gate_gradient<E, 1>;
		kernel<<<grid_over(rows, F, wide ? N : 1), THREADS, 0, cuda_stream(d)>>>(
			(E *)dab.at, (E *)h.at, (const E *)dh.at, (const E *)ab.at, rows, F);
	});
	LAUNCHED();
}
