/* adamw.cu: the optimizer's update of all parameters */
#include "ops/cuda/common.cuh"

enum { THREADS = 256 };

template <class G> struct Moments {
	float *w;
	const G *g;
	float *m, *v;
};

template <int N, class G, class L>
__device__ inline void update(const Moments<G> &a, L *low, size_t at,
	const AdamWStep &s)
{
	float weight[N], grad[N], first[N], second[N];
	load(weight, a.w + at);
	load(grad, a.g + at);
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
 * w = keep w - rate m / (sqrt(v) + eps), low = w; nothing if *skip is not 0
 * all (n) fp32 but g, of G, and low, of L, which may be NULL
 * bytes: n (24 + sizeof(G) + sizeof(L)); 14 n FLOPs
 * grid: n / (256 N), block 256 */
template <int N, class G, class L>
__global__ __launch_bounds__(THREADS) void adamw(Moments<G> a, L *low,
	size_t n, const AdamWStep *step, const int32_t *skip)
{
	size_t at = (blockIdx.x * (size_t)THREADS + threadIdx.x) * N;
	if (skip && *skip)
		return;
	if (at + N <= n)
		update<N>(a, low, at, *step);
	else
		for (; at < n; at++)
			update<1>(a, low, at, *step);
}

extern "C" void cuda_fused_adamw(Device *d, Array w, Array low, Array g, Array m,
	Array v, size_t n, const AdamWStep *step, const int32_t *skip)
{
	const bool wide = packs(w, 4) && packs(g, 4) && packs(m, 4) && packs(v, 4)
		&& (low.at == NULL || packs(low, 4));
	const unsigned blocks = blocks_for(n, THREADS * (wide ? 4 : 1));
	with_type(g.type, [&](auto gradient) {
		using G = decltype(gradient);
		const Moments<G> a = { (float *)w.at, (const G *)g.at, (float *)m.at,
			(float *)v.at };
		with_type(low.at ? low.type : FP32, [&](auto l) {
			using L = decltype(l);
			const auto kernel = wide ? adamw<4, G, L> : adamw<1, G, L>;
			kernel<<<blocks, THREADS, 0, cuda_stream(d)>>>(a, (L *)low.at, n,
				step, skip);
		});
	});
	LAUNCHED();
}
