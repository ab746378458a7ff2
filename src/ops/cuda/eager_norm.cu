/* eager_norm.cu: RMSNorm by elementary steps */
#include "ops/cuda/elementary.cuh"

extern "C" void cuda_rmsnorm_forward(Device *d, Array y, Array rho, Array x,
	Array g, size_t rows, size_t C, double eps)
{
	const size_t n = rows * C;
	const float epsilon = (float)eps;
	Array work = scratch(d, n, "norm's intermediate");
	float *factor = (float *)rho.at;
	map(d, work, n, [] __device__ (float x) { return x * x; }, x);
	reduce_rows<SUM>(d, factor, rows, C, [=] __device__ (float x) {
		return x / C;
	}, work);
	map(d, rho, rows, [=] __device__ (float mean) {
		return rsqrtf(mean + epsilon);
	}, rho);
	map(d, work, n, [] __device__ (float x, float rho) { return x * rho; }, x,
		(PerRow){ factor, C });
	map(d, y, n, [] __device__ (float x, float g) { return x * g; }, work,
		(PerColumn){ g, C });
	device_free(d, work.at);
}

// propagate gradients through RMSNorm, step by step
extern "C" void cuda_rmsnorm_backward(Device *d, Array dx, Array dg, Array dy,
	Array x, Array g, Array rho, size_t rows, size_t C)
{
	const size_t n = rows * C;
	const auto times = [] __device__ (float a, float b) { return a * b; };
	const PerRow factor = { (const float *)rho.at, C };
	Array xhat = scratch(d, n, "normalised row"), v = scratch(d, n,
		"its gradient"),
		work = scratch(d, n, "norm's intermediate"), mean = scratch(d, rows,
			"mean");
	map(d, xhat, n, times, x, factor);
	map(d, work, n, times, dy, xhat);
	cuda_sum_rows(d, dg, 1, (const float *)work.at, rows, C);
	map(d, v, n, times, dy, (PerColumn){ g, C });
	map(d, work, n, times, v, xhat);
	reduce_rows<SUM>(d, (float *)mean.at, rows, C, [=] __device__ (float x) {
		return x / C;
	}, work);
	map(d, work, n, times, xhat, (PerRow){ (const float *)mean.at, C });
	map(d, work, n, [] __device__ (float v, float x) { return v - x; }, v, work);
	map(d, work, n, times, work, factor);
	cuda_add(d, dx, dx, work, n);
	device_free(d, mean.at);
	device_free(d, work.at);
	device_free(d, v.at);
	device_free(d, xhat.at);
}
