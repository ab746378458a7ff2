/* elementwise.cu: plain operations of one map or one reduction */
#include "ops/cuda/elementary.cuh"

extern "C" void cuda_fill(Array y, double value, size_t n)
{
	const float x = (float)value;
	map(y, n, [=] __device__ () { return x; });
}

extern "C" void cuda_cast(Array y, Array x, size_t n)
{
	map(y, n, [] __device__ (float x) { return x; }, x);
}

extern "C" bool cuda_reads(Type stored, Type wanted)
{
	return stored == wanted || (stored == FP32 && wanted == TF32);
}

extern "C" void cuda_add(Array y, Array a, Array b, size_t n)
{
	map(y, n, [] __device__ (float a, float b) { return a + b; }, a, b);
}

extern "C" void cuda_relu_forward(Array y, Array x, size_t n)
{
	map(y, n, [] __device__ (float x) { return x < 0 ? 0 : x; }, x);
}

extern "C" void cuda_relu_backward(Array dx, Array dy, Array x, size_t n)
{
	map(dx, n, [] __device__ (float dy, float x) { return x > 0 ? dy : 0; }, dy,
		x);
}

/* as philox, random_normal and random_truncated in base/random.c */
__device__ static void philox(uint32_t out[4], uint64_t key, uint64_t hi,
	uint64_t lo)
{
	uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32), c2 = (uint32_t)hi,
		c3 = (uint32_t)(hi >> 32);
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	for (int round = 0; round < 10; round++) {
		const uint64_t p0 = (uint64_t)0xD2511F53 * c0;
		const uint64_t p1 = (uint64_t)0xCD9E8D57 * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9;
		k1 += 0xBB67AE85;
	}
	out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

__device__ static double unit(uint32_t low, uint32_t high)
{
	const uint64_t bits = (uint64_t)high << 32 | low;
	return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

__device__ static double truncated(uint64_t seed, uint64_t stream, uint64_t i,
	double bound)
{
	for (uint64_t attempt = 0;; attempt++) {
		uint32_t w[4];
		philox(w, seed, stream | attempt << 48, i);
		const double u = unit(w[0], w[1]), v = unit(w[2], w[3]);
		const double z = sqrt(-2 * log(u)) * cos(2 * M_PI * v);
		if (fabs(z) <= bound)
			return z;
	}
}

struct Normal { uint64_t seed, stream; double sd, bound; };

template <int N>
__device__ inline void load(float (&x)[N], const Normal &from, size_t i)
{
	for (int k = 0; k < N; k++)
		x[k] = (float)(from.sd * truncated(from.seed, from.stream, i + k,
			from.bound));
}

static inline bool packs_of(const Normal &, size_t) { return true; }

extern "C" void cuda_draw(Array y, size_t n, double sd, double bound,
	uint64_t seed, uint64_t stream)
{
	map(y, n, [] __device__ (float z) { return z; },
		(Normal){ seed, stream, sd, bound });
}
/* mean = sum of x (n) / n; *nonfinite: is the sum infinite or NaN?
 * bytes: those of x; grid 1, block 1024 */
__global__ __launch_bounds__(1024) void mean_kernel(float *mean,
	int32_t *nonfinite, Array x, size_t n)
{
	float sum = 0;
	for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
		float value[1];
		load(value, x, i);
		sum += value[0];
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0) {
		*mean = sum / n;
		*nonfinite = !isfinite(sum);
	}
}

extern "C" void cuda_mean(Array mean, int32_t *nonfinite, Array x, size_t n)
{
	mean_kernel<<<1, 1024, 0, cuda_stream()>>>((float *)mean.at, nonfinite, x, n);
	LAUNCHED();
}
/* *count += infinities and NaNs of x (n); bytes: n sizeof; block 256 */
template <int N>
__global__ __launch_bounds__(MAP_THREADS) void count_kernel(int32_t *count,
	Array x, size_t n)
{
	const size_t stride = (size_t)gridDim.x * MAP_THREADS * N;
	int found = 0;
	for (size_t i = (blockIdx.x * (size_t)MAP_THREADS + threadIdx.x) * N; i < n;
		i += stride) {
		float value[N];
		load(value, x, i);
		#pragma unroll
		for (int k = 0; k < N; k++)
			found += !isfinite(value[k]);
	}
	found = __reduce_add_sync(0xffffffff, found);
	if (found && threadIdx.x % 32 == 0)
		atomicAdd(count, found);
}

extern "C" void cuda_count_nonfinite(int32_t *count, Array x, size_t n)
{
	const bool wide = n % 4 == 0 && packs(x, 4);
	const unsigned most = 16 * cuda_multiprocessors();
	const unsigned blocks = blocks_for(n, MAP_THREADS * (wide ? 4 : 1));
	const auto kernel = wide ? count_kernel<4> : count_kernel<1>;
	kernel<<<blocks < most ? blocks : most, MAP_THREADS, 0, cuda_stream()>>>(
		count, x, n);
	LAUNCHED();
}
