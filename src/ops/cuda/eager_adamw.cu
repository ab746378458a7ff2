/* eager_adamw.cu: AdamW by elementary steps */
#include "ops/cuda/elementary.cuh"

extern "C" void cuda_adamw(Array w, Array g, Array m, Array v, size_t n,
	const AdamWStep *step, const int32_t *skip)
{
	const auto plus = [] __device__ (float a, float b) { return a + b; };
	const auto less = [] __device__ (float a, float b) { return a - b; };
	const auto times = [] __device__ (float a, float b) { return a * b; };
	const auto over = [] __device__ (float a, float b) { return a / b; };
	const auto root = [] __device__ (float x) { return sqrtf(x); };
	Array d = scratch(n, "unscaled gradient"), work = scratch(n, "update");
	const Setting unscale = { &step->unscale }, keep = { &step->keep },
		rate = { &step->rate }, eps = { &step->eps },
		beta1 = { &step->beta1 }, beta2 = { &step->beta2 },
		new1 = { &step->one_minus_beta1 }, new2 = { &step->one_minus_beta2 };
	map_unless(skip, d, n, times, g, unscale);
	map_unless(skip, w, n, times, w, keep);
	map_unless(skip, m, n, times, m, beta1);
	map_unless(skip, work, n, times, d, new1);
	map_unless(skip, m, n, plus, m, work);
	map_unless(skip, v, n, times, v, beta2);
	map_unless(skip, work, n, times, d, new2);
	map_unless(skip, work, n, times, work, d);
	map_unless(skip, v, n, plus, v, work);
	map_unless(skip, work, n, root, v);
	map_unless(skip, work, n, plus, work, eps);
	map_unless(skip, work, n, over, m, work);
	map_unless(skip, work, n, times, work, rate);
	map_unless(skip, w, n, less, w, work);
	cuda_release(work.at);
	cuda_release(d.at);
}
