/* adamw.cu: the optimizer's update of all parameters */
#include "ops/cuda/common.cuh"

enum { THREADS = 256 };

/* weights and moments of S, and n gradients of G */
template <class S, class G> struct Moments {
	S *w, *m, *v;
	const G *g[MOST_GRADIENTS];
	int n;                              /* gradients */
};

// load the sum of the gradients
template <int COUNT, int N, class S, class G>
__device__ inline void load_sum(float (&sum)[N], const Moments<S, G> &a,
	size_t at)
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

template <int COUNT, int N, class S, class G, class L>
__device__ inline void update(const Moments<S, G> &a, L *low, size_t at,
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
	if (skip && *skip)
		return;
	if (at + N <= n)
		update<COUNT, N>(a, low, at, *step);
	else
		for (; at < n; at++)
			update<COUNT, 1>(a, low, at, *step);
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
	Moments<S, G> a = { (S *)w.at, (S *)m.at, (S *)v.at, {}, g.n };
	for (int k = 0; k < g.n; k++)
		a.g[k] = (const G *)g.at[k].at;
	const auto kernel = !wide ? g.n == 1 ? adamw<1, 1, S, G, L>
		: adamw<0, 1, S, G, L> : g.n == 1 ? adamw<1, W, S, G, L>
		: g.n == 2 ? adamw<2, W, S, G, L> : adamw<0, W, S, G, L>;
	kernel<<<blocks, THREADS, 0, cuda_stream(d)>>>(a, (L *)low.at, n, step,
		skip);
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
