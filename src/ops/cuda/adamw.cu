/* adamw.cu: the optimizer's update of all parameters */
#include "ops/cuda/adamw.cuh"

enum { THREADS = 256 };

// update all parameters
/* m = beta1 m + (1 - beta1) d, v = beta2 v + (1 - beta2) d^2, d = unscale g,
 * g: the sum of COUNT gradients, or, COUNT 0, of any number of them
 * w = keep w - rate m / (sqrt(v) + eps), low = w; nothing if *skip is not 0
 * all (n), w, m and v of S, g of G, and low, of L, which may be NULL
 * bytes: n (6 sizeof(S) + COUNT sizeof(G) + sizeof(L)); (13 + COUNT) n FLOPs
 * grid: n / (256 N), block 256 */
template <int COUNT, int N, class S, class G, class L>
__global__ __launch_bounds__(THREADS) void adamw(
	const __grid_constant__ Moments<S, G> a, L *low,
	size_t n, const AdamWStep *step, const int32_t *skip)
{
	size_t at = (blockIdx.x * (size_t)THREADS + threadIdx.x) * N;
	float weight[N], one[1];
	if (skip && *skip)
		return;
	if (at + N <= n) {
		update<COUNT>(weight, a, at, *step);
		if (low)
			store(low + at, weight);
		return;
	}
	for (; at < n; at++) {
		update<COUNT>(one, a, at, *step);
		if (low)
			store(low + at, one);
	}
}

template <class S, class G, class L>
static void launch(Device *d, Array w, Array low, const Gradients &g, Array m,
	Array v, size_t n, const AdamWStep *step, const int32_t *skip)
{
	constexpr int W = sizeof(S) == 2 ? 8 : 4;
	bool wide = packs(w, W) && packs(m, W) && packs(v, W)
		&& (low.at == NULL || packs(low, W));
	for (int k = 0; k < g.n; k++)
		wide = wide && packs(g.at[k], W);
	const unsigned blocks = blocks_for(n, THREADS * (wide ? W : 1));
	const auto kernel = !wide ? g.n == 1 ? adamw<1, 1, S, G, L>
		: adamw<0, 1, S, G, L> : g.n == 1 ? adamw<1, W, S, G, L>
		: g.n == 2 ? adamw<2, W, S, G, L> : adamw<0, W, S, G, L>;
	kernel<<<blocks, THREADS, 0, cuda_stream(d)>>>(moments_of<S, G>(w, m, v, g),
		(L *)low.at, n, step, skip);
	LAUNCHED();
}

extern "C" void cuda_fused_adamw(Device *d, Array w, Array low, Gradients g,
	Array m, Array v, size_t n, const AdamWStep *step, const int32_t *skip)
{
	assert(1 <= g.n && g.n <= MOST_GRADIENTS);
	assert(w.type == m.type && w.type == v.type);
	for (int k = 0; k < g.n; k++)
		assert(g.at[k].type == g.at[0].type);
	const bool state = w.type == BF16 || w.type == FP16;
	assert(!state || (low.at == NULL && (g.at[0].type == FP32
		|| g.at[0].type == w.type)));
	with_type(state ? FP32 : g.at[0].type, [&](auto gradient) {
		using G = decltype(gradient);
		with_type(low.at ? low.type : FP32, [&](auto l) {
			if (!state)
				launch<float, G, decltype(l)>(d, w, low, g, m, v, n, step, skip);
		});
	});
	with_type(state ? w.type : FP32, [&](auto s) {
		using S = decltype(s);
		if (state && g.at[0].type == FP32)
			launch<S, float, S>(d, w, low, g, m, v, n, step, skip);
		else if (state)
			launch<S, S, S>(d, w, low, g, m, v, n, step, skip);
	});
}
