/* eager_mlp.cu: SwiGLU and cross-entropy by elementary steps */
#include "ops/cuda/elementary.cuh"

extern "C" void cuda_swiglu_forward(Device *d, Array h, Array a, Array b,
	size_t n)
{
	const auto times = [] __device__ (float a, float b) { return a * b; };
	Array work = scratch(d, n, "SwiGLU's intermediate");
	map(d, work, n, [] __device__ (float a) { return 1 / (1 + expf(-a)); }, a);
	map(d, work, n, times, a, work);
	map(d, h, n, times, work, b);
	device_free(d, work.at);
}

// propagate gradients through SwiGLU, step by step
extern "C" void cuda_swiglu_backward(Device *d, Array da, Array db, Array dh,
	Array a, Array b, size_t n)
{
	const auto times = [] __device__ (float a, float b) { return a * b; };
	Array s = scratch(d, n, "sigmoid"), work = scratch(d, n,
		"SwiGLU's intermediate"),
		up = scratch(d, n, "gradient of the gate");
	map(d, s, n, [] __device__ (float a) { return 1 / (1 + expf(-a)); }, a);
	map(d, work, n, times, a, s);
	map(d, up, n, times, dh, b);
	map(d, db, n, times, dh, work);
	map(d, work, n, [] __device__ (float s) { return 1 - s; }, s);
	map(d, work, n, times, a, work);
	map(d, work, n, [] __device__ (float x) { return 1 + x; }, work);
	map(d, work, n, times, s, work);
	map(d, da, n, times, up, work);
	device_free(d, up.at);
	device_free(d, work.at);
	device_free(d, s.at);
}

// cross-entropy, step by step
/* the logit of each row's target, and 1 at the targets */
struct Gathered { Array logits; const int32_t *targets; size_t V; };
struct OneHot { const int32_t *targets; size_t V; };

template <int N>
__device__ inline void load(float (&x)[N], const Gathered &from, size_t i)
{
	#pragma unroll
	for (int k = 0; k < N; k++)
		load(*(float (*)[1])(x + k), from.logits,
			(i + k) * from.V + from.targets[i + k]);
}

template <int N>
__device__ inline void load(float (&x)[N], const OneHot &from, size_t i)
{
	const size_t column = i % from.V, target = from.targets[i / from.V];
	#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = column + k == target;
}

static inline bool packs_of(const Gathered &, size_t) { return true; }
static inline bool packs_of(const OneHot &o, size_t N) { return o.V % N == 0; }

extern "C" void cuda_cross_entropy_forward(Device *d, Array losses, Array lse,
	Array logits, const int32_t *targets, size_t N, size_t V)
{
	const size_t n = N * V;
	const auto same = [] __device__ (float x) { return x; };
	const auto less = [] __device__ (float a, float b) { return a - b; };
	Array work = scratch(d, n, "logits"), most = scratch(d, N, "maximum"),
		target = scratch(d, N, "target's logit");
	reduce_rows<MAXIMUM>(d, (float *)most.at, N, V, same, logits);
	map(d, work, n, less, logits, (PerRow){ (const float *)most.at, V });
	map(d, work, n, [] __device__ (float x) { return expf(x); }, work);
	reduce_rows<SUM>(d, (float *)lse.at, N, V, same, work);
	map(d, lse, N, [] __device__ (float sum) { return logf(sum); }, lse);
	cuda_add(d, lse, lse, most, N);
	map(d, target, N, same, (Gathered){ logits, targets, V });
	map(d, losses, N, less, lse, target);
	device_free(d, target.at);
	device_free(d, most.at);
	device_free(d, work.at);
}

extern "C" void cuda_cross_entropy_backward(Device *d, Array dlogits,
	Array logits, Array lse, const int32_t *targets, double scale, size_t N,
	size_t V)
{
	const size_t n = N * V;
	const float factor = (float)scale;
	const auto less = [] __device__ (float a, float b) { return a - b; };
	Array work = scratch(d, n, "gradient of logits");
	map(d, work, n, less, logits, (PerRow){ (const float *)lse.at, V });
	map(d, work, n, [] __device__ (float x) { return expf(x); }, work);
	map(d, work, n, less, work, (OneHot){ targets, V });
	map(d, dlogits, n, [=] __device__ (float x) { return x * factor; }, work);
	device_free(d, work.at);
}
