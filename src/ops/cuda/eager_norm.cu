/* eager_norm.cu: RMSNorm by elementary steps */
#include "ops/cuda/elementary.cuh"

extern "C" void cuda_rmsnorm_forward(Array y, Array rho, Array x, Array g,
	size_t rows, size_t C, double eps)
{
	const size_t n = rows * C;
	const float epsilon = (float)eps;
	Array work = scratch(n, "norm's intermediate");
	float *factor = (float *)rho.at;
	map(work, n, [] __device__ (float x) { return x * x; }, x);
	reduce_rows<SUM>(factor, rows, C, [=] __device__ (float x) {
		return x / C;
	}, work);
	map(rho, rows, [=] __device__ (float mean) {
		return rsqrtf(mean + epsilon);
	}, rho);
	map(work, n, [] __device__ (float x, float rho) { return x * rho; }, x,
		(PerRow){ factor, C });
	map(y, n, [] __device__ (float x, float g) { return x * g; }, work,
		(PerColumn){ g, C });
	cuda_release(work.at);
}

extern "C" void cuda_rmsnorm_backward(Array dx, Array dg, Array dy, Array x,
	Array g, Array rho, size_t rows, size_t C)
{
	const size_t n = rows * C;
	const auto times = [] __device__ (float a, float b) { return a * b; };
	const PerRow factor = { (const float *)rho.at, C };
	Array xhat = scratch(n, "normalised row"), v = scratch(n, "its gradient"),
		work = scratch(n, "norm's intermediate"), mean = scratch(rows, "mean");
	map(xhat, n, times, x, factor);
	map(work, n, times, dy, xhat);
	cuda_sum_rows((float *)dg.at, 1, (const float *)work.at, rows, C);
	map(v, n, times, dy, (PerColumn){ g, C });
	map(work, n, times, v, xhat);
	reduce_rows<SUM>((float *)mean.at, rows, C, [=] __device__ (float x) {
		return x / C;
	}, work);
	map(work, n, times, xhat, (PerRow){ (const float *)mean.at, C });
	map(work, n, [] __device__ (float v, float x) { return v - x; }, v, work);
	map(work, n, times, work, factor);
	cuda_add(dx, dx, work, n);
	cuda_release(mean.at);
	cuda_release(work.at);
	cuda_release(v.at);
	cuda_release(xhat.at);
}
