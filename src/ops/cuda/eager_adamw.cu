/* eager_adamw.cu: AdamW by elementary steps */
#include "ops/cuda/elementary.cuh"

extern "C" void cuda_adamw(Device *d, Array w, Array low, Array g, Array m,
	Array v, size_t n, const AdamWStep *step, const int32_t *skip)
{
	const auto plus = [] __device__ (float a, float b) { return a + b; };
	const auto less = [] __device__ (float a, float b) { return a - b; };
	const auto times = [] __device__ (float a, float b) { return a * b; };
	const auto over = [] __device__ (float a, float b) { return a / b; };
	const auto root = [] __device__ (float x) { return sqrtf(x); };
	Array grad = scratch(d, n, "unscaled gradient"), work = scratch(d, n,
		"update");
	const DeviceScalar unscale = { &step->unscale }, keep = { &step->keep },
		rate = { &step->rate }, eps = { &step->eps },
		beta1 = { &step->beta1 }, beta2 = { &step->beta2 },
		new1 = { &step->one_minus_beta1 }, new2 = { &step->one_minus_beta2 };
	// update moments and weight, a kernel each
	map_unless(d, skip, grad, n, times, g, unscale);
	map_unless(d, skip, w, n, times, w, keep);
	map_unless(d, skip, m, n, times, m, beta1);
	map_unless(d, skip, work, n, times, grad, new1);
	map_unless(d, skip, m, n, plus, m, work);
	map_unless(d, skip, v, n, times, v, beta2);
	map_unless(d, skip, work, n, times, grad, new2);
	map_unless(d, skip, work, n, times, work, grad);
	map_unless(d, skip, v, n, plus, v, work);
	map_unless(d, skip, work, n, root, v);
	map_unless(d, skip, work, n, plus, work, eps);
	map_unless(d, skip, work, n, over, m, work);
	map_unless(d, skip, work, n, times, work, rate);
	map_unless(d, skip, w, n, less, w, work);
	if (low.at)
		map_unless(d, skip, low, n, [] __device__ (float x) { return x; }, w);
	device_free(d, work.at);
	device_free(d, grad.at);
}
