/* elementwise.cu: eager operations of one or two kernels */
#include "base/random.h"
#include "ops/cuda/elementary.cuh"

// say what a matmul reads
extern "C" bool cuda_reads(Device *d, Type stored, Type wanted)
{
	return stored == wanted || (stored == FP32 && wanted == TF32);
}

// draw normal numbers
struct Normal { uint64_t seed, stream, first; double sd, bound; };

template <int N>
__device__ inline void load(float (&x)[N], const Normal &from, size_t i)
{
	for (int k = 0; k < N; k++)
		x[k] = (float)(from.sd * random_truncated(from.seed, from.stream,
			from.first + i + k, from.bound));
}

static inline bool packs_of(const Normal &, size_t) { return true; }

extern "C" void cuda_draw(Device *d, Array y, size_t n, double sd, double bound,
	uint64_t seed, uint64_t stream, uint64_t first)
{
	map(d, y, n, [] __device__ (float z) { return z; },
		(Normal){ seed, stream, first, sd, bound });
}

// take the mean of all
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

extern "C" void cuda_mean(Device *d, Array mean, int32_t *nonfinite, Array x,
	size_t n)
{
	mean_kernel<<<1, 1024, 0, cuda_stream(d)>>>((float *)mean.at, nonfinite, x,
		n);
	LAUNCHED();
}

// count what is not finite
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

extern "C" void cuda_count_nonfinite(Device *d, int32_t *count, Array x, size_t n)
{
	const bool wide = n % 4 == 0 && packs(x, 4);
	const unsigned most = 16 * cuda_multiprocessors(d);
	const unsigned blocks = blocks_for(n, MAP_THREADS * (wide ? 4 : 1));
	const auto kernel = wide ? count_kernel<4> : count_kernel<1>;
	kernel<<<blocks < most ? blocks : most, MAP_THREADS, 0, cuda_stream(d)>>>(
		count, x, n);
	LAUNCHED();
}

// sum squares, and clip
constexpr unsigned SQUARE_BLOCKS = 1024;

/* partial[block] = sum of the squares of a part of g (n)
 * bytes: n sizeof for each gradient; grid at most 1024, block 256 */
__global__ __launch_bounds__(MAP_THREADS) void squares_kernel(float *partial,
	Gradients g, size_t n)
{
	const size_t stride = (size_t)gridDim.x * MAP_THREADS;
	float sum = 0;
	for (size_t i = blockIdx.x * (size_t)MAP_THREADS + threadIdx.x; i < n;
		i += stride) {
		float x = 0;
		for (int k = 0; k < g.n; k++) {
			float value[1];
			load(value, g.at[k], i);
			x += value[0];
		}
		sum += x * x;
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		partial[blockIdx.x] = sum;
}

/* *sum += partial (n), n at most 1024; grid 1, block 1024 */
__global__ __launch_bounds__(SQUARE_BLOCKS) void add_partial(float *sum,
	const float *partial, unsigned n)
{
	const float all = block_sum(threadIdx.x < n ? partial[threadIdx.x] : 0);
	if (threadIdx.x == 0)
		*sum += all;
}

extern "C" void cuda_add_squares(Device *d, Array sum, Gradients g, size_t n)
{
	const unsigned enough = blocks_for(n, MAP_THREADS),
		blocks = enough < SQUARE_BLOCKS ? enough : SQUARE_BLOCKS;
	Array partial = scratch(d, blocks, "sums of squares");
	squares_kernel<<<blocks, MAP_THREADS, 0, cuda_stream(d)>>>(
		(float *)partial.at, g, n);
	LAUNCHED();
	add_partial<<<1, SQUARE_BLOCKS, 0, cuda_stream(d)>>>((float *)sum.at,
		(const float *)partial.at, blocks);
	LAUNCHED();
	device_free(d, partial.at);
}

/* limits factor such that |factor| sqrt(squares) <= most; grid 1, block 1 */
__global__ void clip_kernel(float *factor, const float *squares, float most)
{
	const float by = most / (fabsf(*factor) * sqrtf(*squares) + 1e-6f);
	if (by < 1)
		*factor *= by;
}

extern "C" void cuda_clip(Device *d, real *factor, Array squares, double most)
{
	clip_kernel<<<1, 1, 0, cuda_stream(d)>>>(factor, (const float *)squares.at,
		(float)most);
	LAUNCHED();
}
