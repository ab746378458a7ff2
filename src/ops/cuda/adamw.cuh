/* adamw.cuh: AdamW's update of a pack of parameters */
#ifndef OPS_CUDA_ADAMW_CUH
#define OPS_CUDA_ADAMW_CUH

#include "ops/cuda/common.cuh"

/* weights and moments of S, and n gradients of G */
template <class S, class G> struct Moments {
	S *w, *m, *v;
	const G *g[MOST_GRADIENTS];
	int n;                              /* gradients */
};

template <class S, class G>
static Moments<S, G> moments_of(Array w, Array m, Array v, const Gradients &g)
{
	Moments<S, G> a = { (S *)w.at, (S *)m.at, (S *)v.at, {}, g.n };
	for (int k = 0; k < g.n; k++)
		a.g[k] = (const G *)g.at[k].at;
	return a;
}

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

/* weight: set to the weights from `at` on, which are stored too */
template <int COUNT, int N, class S, class G>
__device__ inline void update(float (&weight)[N], const Moments<S, G> &a,
	size_t at, const AdamWStep &s)
{
	float grad[N], first[N], second[N];
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
}
#endif
