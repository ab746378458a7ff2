/* first_kernels.cu: sums over rows, and loads from each level of memory */
#include <cuda_pipeline.h>

#include "cases/first_kernels.h"
#include "ops/cuda/common.cuh"

constexpr int SUM_THREADS = 256;

// sum rows, a thread a row
/* grid rows / SUM_THREADS, block SUM_THREADS; 4 rows C bytes */
__global__ void sum_rows_by_thread(SumCase s)
{
	const size_t row = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
	if (row >= s.rows)
		return;
	float sum = 0;
	for (size_t j = 0; j < s.C; j++)
		sum += s.x[row * s.C + j];
	s.sums[row] = sum;
}

// sum rows, a block a row
/* grid rows, block SUM_THREADS; 4 rows C bytes */
__global__ void sum_rows_by_block(SumCase s)
{
	__shared__ float partial[SUM_THREADS];
	const float *x = s.x + blockIdx.x * s.C;
	float sum = 0;
	for (size_t j = threadIdx.x; j < s.C; j += SUM_THREADS)
		sum += x[j];
	partial[threadIdx.x] = sum;
	// add the partial sums of the block
	for (unsigned half = SUM_THREADS / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.x < half)
			partial[threadIdx.x] += partial[threadIdx.x + half];
	}
	if (threadIdx.x == 0)
		s.sums[blockIdx.x] = partial[0];
}

// sum rows, a warp a row
/* grid 32 rows / SUM_THREADS, block SUM_THREADS; 4 rows C bytes; C % 4 == 0 */
template <int AHEAD>
__global__ __launch_bounds__(SUM_THREADS) void sum_rows_by_warp(SumCase s)
{
	const size_t row = (blockIdx.x * (size_t)SUM_THREADS + threadIdx.x) / 32;
	if (row >= s.rows)
		return;
	const float4 *x = (const float4 *)(s.x + row * s.C);
	const size_t packs = s.C / 4, lane = threadIdx.x % 32;
	float sum = 0;
	for (size_t j = lane; j < packs; j += 32 * AHEAD) {
		float4 v[AHEAD];
		// load the next packs, and add them
		#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			v[k] = j + 32 * k < packs ? x[j + 32 * k] : float4{ };
		#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
	}
	for (int k = 16; k > 0; k /= 2)
		sum += __shfl_xor_sync(0xffffffff, sum, k);
	if (lane == 0)
		s.sums[row] = sum;
}

// sum rows through asynchronous copies
/* as sum_rows_by_warp, with a ring of STAGES packs a thread in shared memory */
template <int STAGES>
__global__ __launch_bounds__(SUM_THREADS) void sum_rows_async(SumCase s)
{
	__shared__ float4 ring[STAGES][SUM_THREADS];
	const size_t row = (blockIdx.x * (size_t)SUM_THREADS + threadIdx.x) / 32;
	if (row >= s.rows)
		return;
	const float4 *x = (const float4 *)(s.x + row * s.C);
	const size_t packs = s.C / 4, lane = threadIdx.x % 32;
	// define how a pack is fetched
	const auto fetch = [&](size_t turn) {
		if (lane + 32 * turn < packs)
			__pipeline_memcpy_async(&ring[turn % STAGES][threadIdx.x],
				x + lane + 32 * turn, sizeof *x);
		__pipeline_commit();
	};
	for (int stage = 0; stage < STAGES - 1; stage++)
		fetch(stage);
	float sum = 0;
	for (size_t turn = 0; lane + 32 * turn < packs; turn++) {
		fetch(turn + STAGES - 1);
		__pipeline_wait_prior(STAGES - 1);
		const float4 v = ring[turn % STAGES][threadIdx.x];
		sum += (v.x + v.y) + (v.z + v.w);
	}
	for (int k = 16; k > 0; k /= 2)
		sum += __shfl_xor_sync(0xffffffff, sum, k);
	if (lane == 0)
		s.sums[row] = sum;
}

// launch a version of the sums
extern "C" void cuda_sum_rows_by(Device *d, SumVersion version, const SumCase *s)
{
	const unsigned rows = (unsigned)s->rows,
		by_thread = (rows + SUM_THREADS - 1) / SUM_THREADS,
		by_warp = (rows + SUM_THREADS / 32 - 1) / (SUM_THREADS / 32);
	const cudaStream_t stream = cuda_stream(d);
	assert(s->C % 4 == 0 && aligned(s->x, 16));
	switch (version) {
	case SUM_THREAD:
		sum_rows_by_thread<<<by_thread, SUM_THREADS, 0, stream>>>(*s);
		break;
	case SUM_BLOCK:
		sum_rows_by_block<<<rows, SUM_THREADS, 0, stream>>>(*s);
		break;
	case SUM_WARP:
		sum_rows_by_warp<4><<<by_warp, SUM_THREADS, 0, stream>>>(*s);
		break;
	default:
		sum_rows_async<4><<<by_warp, SUM_THREADS, 0, stream>>>(*s);
	}
	LAUNCHED();
}

// chase a chain of addresses
__device__ long long nanoseconds()
{
	long long ns;
	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
	return ns;
}

template <class Chain>
__device__ uint32_t follow(const Chain chain, uint32_t at, size_t steps)
{
	for (size_t i = 0; i < steps; i++)
		at = chain[at];
	asm volatile("" : "+r"(at));
	return at;
}

template <class Chain>
__device__ void time_chain(Chase *chase, const Chain chain, size_t warmup,
	size_t steps)
{
	const uint32_t start = follow(chain, chase->at, warmup);
	const long long clocks = clock64(), ns = nanoseconds();
	const uint32_t end = follow(chain, start, steps);
	*chase = { clock64() - clocks, nanoseconds() - ns, end };
}

// follow the chain in a warp
/* next (n); grid 1, block 32: the warp copies the chain to shared memory if that
 * is the level, and its first lane follows it */
template <bool SHARED>
__global__ void chase_kernel(Chase *chase, const uint32_t *next, size_t n,
	size_t warmup, size_t steps)
{
	extern __shared__ uint32_t copy[];
	for (size_t i = threadIdx.x; SHARED && i < n; i += 32)
		copy[i] = next[i];
	__syncwarp();
	if (threadIdx.x != 0)
		return;
	if constexpr (SHARED)
		time_chain(chase, copy, warmup, steps);
	else
		time_chain(chase, next, warmup, steps);
}

extern "C" void cuda_chase(Device *d, MemoryLevel level, Chase *chase,
	const uint32_t *next, size_t n, size_t warmup, size_t steps)
{
	const cudaStream_t stream = cuda_stream(d);
	if (level == LEVEL_SHARED)
		chase_kernel<true><<<1, 32, n * sizeof *next, stream>>>(chase, next, n,
			warmup, steps);
	else
		chase_kernel<false><<<1, 32, 0, stream>>>(chase, next, n, warmup,
			steps);
	LAUNCHED();
}

// read a level again and again
template <MemoryLevel LEVEL>
__device__ float4 read_pack(const float4 *from)
{
	float4 v;
	if constexpr (LEVEL == LEVEL_SHARED)
		asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
			: "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
			: "r"((unsigned)__cvta_generic_to_shared(from)));
	else if constexpr (LEVEL == LEVEL_L1)
		asm volatile("ld.global.ca.v4.f32 {%0, %1, %2, %3}, [%4];"
			: "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(from));
	else
		asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
			: "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(from));
	return v;
}

// add what a thread reads
/* as cuda_read_level, with n = 4 packs; bytes: 4 n passes a block; grid
 * cuda_level_blocks, block LEVEL_THREADS; shared memory: 4 n for LEVEL_SHARED */
template <MemoryLevel LEVEL>
__global__ __launch_bounds__(LEVEL_THREADS) void read_kernel(float *sums,
	const float4 *x, size_t packs, int passes)
{
	extern __shared__ float4 held[];
	const float4 *from = x + blockIdx.x * packs;
	if (LEVEL == LEVEL_SHARED) {
		for (size_t i = threadIdx.x; i < packs; i += LEVEL_THREADS)
			held[i] = from[i];
		__syncthreads();
		from = held;
	}
	float sum = 0;
	for (int pass = 0; pass < passes; pass++) {
		#pragma unroll 4
		for (size_t i = 0; i < packs; i += LEVEL_THREADS) {
			const float4 v = read_pack<LEVEL>(from + i + threadIdx.x);
			sum += (v.x + v.y) + (v.z + v.w);
		}
	}
	sums[blockIdx.x * (size_t)LEVEL_THREADS + threadIdx.x] = sum;
}

// launch the reading of a level
template <MemoryLevel LEVEL>
static void launch_read(Device *d, float *sums, const float *x, size_t n,
	int passes)
{
	const auto kernel = read_kernel<LEVEL>;
	const size_t nbytes = LEVEL == LEVEL_SHARED ? n * sizeof *x : 0;
	CUDA(cudaFuncSetAttribute(kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, (int)nbytes));
	kernel<<<cuda_level_blocks(d), LEVEL_THREADS, nbytes, cuda_stream(d)>>>(sums,
		(const float4 *)x, n / 4, passes);
	LAUNCHED();
}

extern "C" unsigned cuda_level_blocks(const Device *d)
{
	return 2 * cuda_multiprocessors(d);
}

extern "C" void cuda_read_level(Device *d, MemoryLevel level, float *sums,
	const float *x, size_t n, int passes)
{
	const auto launch = level == LEVEL_SHARED ? launch_read<LEVEL_SHARED>
		: level == LEVEL_L1 ? launch_read<LEVEL_L1>
		: level == LEVEL_L2 ? launch_read<LEVEL_L2> : launch_read<LEVEL_MEMORY>;
	assert(n % (4 * LEVEL_THREADS) == 0 && aligned(x, 16));
	launch(d, sums, x, n, passes);
}
