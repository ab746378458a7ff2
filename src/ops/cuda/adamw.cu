/* adamw.cu: the optimizer's update of all parameters */
#include "ops/cuda/common.cuh"

enum { THREADS = 256 };

template <class G> struct Moments {
	float *w, *m, *v;
	const G *g[MOST_GRADIENTS];
	int n;                              /* gradients */
};

template <int COUNT, int N, class G>
__device__ inline void load_sum(float (&sum)[N], const Moments<G> &a, size_t at)
{
	const int count = COUNT ? COUNT : a.n;
	load(sum, a.g[0] + at);
	#pragma unroll
	for (int k = 1; k < count; k++) {
		float more[N];
		load(more, a.g[k] + at);
		#pragma unroll
		for (int i = 0; i < N; i++)
			sum[i] += more[i];
	}
}

template <int COUNT, int N, class G, class L>
__device__ inline void update(const Moments<G> &a, L *low, size_t at,
	const AdamWStep &s)
{
	float weight[N], grad[N], first[N], second[N];
	load(weight, a.w + at);
	load_sum<COUNT>(grad, a, at);
	load(first, a.m + at);
	load(second, a.v + at);
	#pragma unroll
	for (int i = 0; i < N; i++) {
		const float d = grad[i] * s.unscale;
		first[i] = s.beta1 * first[i] + s.one_minus_beta1 * d;
		second[i] = s.beta2 * second[i] + s.one_minus_beta2 * d * d;
		weight[i] = weight[i] * s.keep
			- s.rate * first[i] / (sqrtf(second[i]) + s.eps);
	}
	store(a.w + at, weight);
	store(a.m + at, first);
	store(a.v + at, second);
	if (low)
		store(low + at, weight);
}

/* m = beta1 m + (1 - beta1) d, v = beta2 v + (1 - beta2) d^2, d = unscale g,
 * g: the sum of COUNT gradients, or, COUNT 0, of any number of them
 * w = keep w - rate m / (sqrt(v) + eps), low = w; nothing if *skip is not 0
 * all (n) fp32 but g, of G, and low, of L, which may be NULL
 * bytes: n (24 + COUNT sizeof(G) + sizeof(L)); (13 + COUNT) n FLOPs
 * grid: n / (256 N), block 256 */
template <int COUNT, int N, class G, class L>
__global__ __launch_bounds__(THREADS) void adamw(
	const __grid_constant__ Moments<G> a, L *low,
	size_t n, const AdamWStep *step, const int32_t *skip)
{
	size_t at = (blockIdx.x * (size_t)THREADS + threadIdx.x) * N;
	if (skip && *skip)
		return;
	if (at + N <= n)
		update<COUNT, N>(a, low, at, *step);
	else
		for (; at < n; at++)
			update<COUNT, 1>(a, low, at, *step);
}

extern "C" void cuda_fused_adamw(Device *d, Array w, Array low, Gradients g,
	Array m, Array v, size_t n, const AdamWStep *step, const int32_t *skip)
{
	bool wide = packs(w, 4) && packs(m, 4) && packs(v, 4)
		&& (low.at == NULL || packs(low, 4));
	assert(1 <= g.n && g.n <= MOST_GRADIENTS);
	for (int k = 0; k < g.n; k++) {
		assert(g.at[k].type == g.at[0].type);
		wide = wide && packs(g.at[k], 4);
	}
	const unsigned blocks = blocks_for(n, THREADS * (wide ? 4 : 1));
	with_type(g.at[0].type, [&](auto gradient) {
		using G = decltype(gradient);
		Moments<G> a = { (float *)w.at, (float *)m.at, (float *)v.at, {}, g.n };
		for (int k = 0; k < g.n; k++)
			a.g[k] = (const G *)g.at[k].at;
		with_type(low.at ? low.type : FP32, [&](auto l) {
			using L = decltype(l);
			const auto kernel = !wide ? g.n == 1 ? adamw<1, 1, G, L>
				: adamw<0, 1, G, L> : g.n == 1 ? adamw<1, 4, G, L>
				: g.n == 2 ? adamw<2, 4, G, L> : adamw<0, 4, G, L>;
			kernel<<<blocks, THREADS, 0, cuda_stream(d)>>>(a, (L *)low.at, n,
				step, skip);
		});
	});
	LAUNCHED();
}
