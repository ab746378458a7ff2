/* sgd.cu: SGD by elementary steps */
#include "ops/cuda/elementary.cuh"

extern "C" void cuda_sgd(Device *d, Array w, Array low, Gradients gradients,
	Array velocity, size_t n, const SgdStep *step, const int32_t *skip)
{
	Array g = gradients.at[0], sum = { NULL, FP32 };
	for (int k = 1; k < gradients.n; k++) {
		if (k == 1)
			sum = scratch(d, n, "summed gradient");
		map(d, sum, n, [] __device__ (float a, float b) { return a + b; }, g,
			gradients.at[k]);
		g = sum;
	}
	const DeviceScalar rate = { &step->rate }, momentum = { &step->momentum },
		unscale = { &step->unscale };
	if (velocity.at) {
		map_unless(d, skip, velocity, n, [] __device__ (float v, float mu,
			float g, float u) { return mu * v + u * g; }, velocity, momentum, g,
			unscale);
		map_unless(d, skip, w, n, [] __device__ (float w, float r, float v) {
			return w - r * v; }, w, rate, velocity);
	} else {
		map_unless(d, skip, w, n, [] __device__ (float w, float r, float g,
			float u) { return w - r * (u * g); }, w, rate, g, unscale);
	}
	if (low.at)
		map_unless(d, skip, low, n, [] __device__ (float w) { return w; }, w);
	device_free(d, sum.at);
}
