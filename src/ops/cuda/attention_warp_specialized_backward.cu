/* attention_warp_specialized_backward.cu: attention backward on Hopper: the
 * kernels
 * 1. backward_preprocess: L log2(e), delta; semaphores become 0
 * 2. warp_specialized_backward: a block of threads owns N keys and visits the
 *    queries that see them, M at a time; dK, dV stay in registers; dQ is added
 *    to fp32 accumulators in global memory
 * 3. backward_postprocess: dQ = scale times these, rotated back and rounded */
#include "ops/cuda/hopper.h"
#include "ops/cuda/warp_specialized_backward_visits.cuh"

// compute delta, and clear the semaphores
/* widens two 16-bit elements */
template <class T> __device__ inline float2 widen_pair(unsigned x)
{
	if constexpr (std::is_same<T, fp16>::value)
		return __half22float2(*(const __half2 *)&x);
	else
		return { __uint_as_float(x << 16), __uint_as_float(x & 0xffff0000) };
}

/* the address of row t of head bh */
template <class T>
__device__ inline T *row_of(const Heads &x, int bh, int H, int t)
{
	return (T *)x.x.at + bh / H * x.batch + bh % H * x.head + t * x.row;
}

/* writes L and delta of 64 queries, and sets semaphores to 0; padded queries get
 * values for which P and delta are 0
 * bytes: O, dO, L once
 * grid: B H rows / 64 */
template <class S>
__global__ __launch_bounds__(128) void backward_preprocess(BackwardScratch w,
	Heads o, Heads d_o, const float *L, int H, float scale)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	using T = typename S::T;
	constexpr int D = S::D, TEAM = D > 64 ? 16 : D / 8,     /* threads of a row */
		TIMES = BLOCK * TEAM / 128;
	const int blocks = w.rows / BLOCK, bh = blockIdx.x / blocks,
		first = blockIdx.x % blocks * BLOCK + threadIdx.x / TEAM,
		c = threadIdx.x % TEAM;
	griddepcontrol_launch_dependents();
	using Words = Pack<unsigned, 4>;
	Words x[TIMES], y[TIMES];
	// read this thread's part of O and dO
	#pragma unroll
	for (int i = 0; i < TIMES; i++) {
		const int t = first + i * (128 / TEAM);
		x[i] = y[i] = {};
		if (t < w.seqlen_q && c * 8 < D) {
			x[i] = *(const Words *)(row_of<T>(o, bh, H, t) + c * 8);
			y[i] = *(const Words *)(row_of<T>(d_o, bh, H, t) + c * 8);
		}
	}
	if (threadIdx.x == 0)
		w.dq_semaphore[blockIdx.x] = 0;
	if (threadIdx.x == 0 && blockIdx.x == 0)
		*w.tile_counter = 0;
	#pragma unroll
	for (int i = 0; i < TIMES; i++) {
		const int t = first + i * (128 / TEAM);
		// write delta and L of query t
		float sum = 0;
		#pragma unroll
		for (int k = 0; k < 4; k++) {
			const float2 u = widen_pair<T>(x[i].at[k]),
				v = widen_pair<T>(y[i].at[k]);
			sum = fmaf(u.x, v.x, fmaf(u.y, v.y, sum));
		}
		#pragma unroll
		for (int step = TEAM / 2; step > 0; step /= 2)
			sum += __shfl_xor_sync(0xffffffff, sum, step);
		const size_t to = (size_t)bh * w.rows + t / 16 * 16 + row_stats_position(t % 16);
		if (c == 0) {
			const float at = t < w.seqlen_q ? L[(size_t)bh * w.seqlen_q + t] : INFINITY;
			w.delta[to] = S::WIDE ? -sum : sum;
			w.L[to] = S::WIDE ? -finite_L(at / scale) : finite_L(at * LOG2_E);
		}
	}
#endif
}

// assign the roles of the warpgroups
/* FLOPs: 10 D for each pair of query and key; bytes: K, V, dK, dV once; Q, dO,
 * L, delta and twice (read and written) the accumulators of dQ, in the L2
 * cache, for each N keys
 * grid: B H key tiles; block: a warpgroup that starts copies, perhaps one for
 * dQ, and one for each 64 keys */
template <class S>
__global__ __launch_bounds__(S::THREADS, 1)
void warp_specialized_backward(const __grid_constant__ BackwardArguments a)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ char memory[];
	const unsigned shared = (smem_address(memory) + 1023) / 1024 * 1024;
	auto *bars = (Barriers<S> *)(memory + (shared - smem_address(memory))
		+ S::BARRIERS);
	static_assert(sizeof(*bars) <= 256, "they have their place");
	const int group = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);
	// make barriers, and take the next tile
	if (threadIdx.x == 0) {
		start_barriers(bars);
		prefetch_tensormap(&a.q);
		prefetch_tensormap(&a.k);
		prefetch_tensormap(&a.v);
		prefetch_tensormap(&a.d_o);
	}
	griddepcontrol_wait();
	if (threadIdx.x == 0)
		bars->tile_index = a.deterministic ? atomicAdd(a.w.tile_counter, 1)
			: blockIdx.x;
	__syncthreads();                        /* barriers and tile are there */
	griddepcontrol_launch_dependents();
	const KeyTile p = key_tile_of<S>(a, bars->tile_index);
	if (group == 0) {
		setmaxnreg_dec<S::LOW>();
		if (threadIdx.x == 0)
			produce<S>(a, p, shared, bars);
		else if (threadIdx.x == 32 || threadIdx.x == 64)
			add_dq<S>(a, p, shared, bars, threadIdx.x / 64);
	} else if (S::HELPER && group == 1) {
		setmaxnreg_dec<S::MIDDLE>();
		compute_dq<S>(p, shared, bars);
	} else {
		setmaxnreg_inc<S::HIGH>();
		consume<S>(a, p, shared, bars, group - 1 - S::HELPER);
	}
#endif
}

// round the accumulators of dQ
/* scales, rotates back and rounds dQ of QUERIES queries
 * bytes: accumulators once, dQ once
 * grid: B H ceil(queries / QUERIES) */
template <class S>
__global__ __launch_bounds__(128)
void backward_postprocess(const __grid_constant__ BackwardArguments a, Heads dq)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	using T = typename S::T;
	constexpr int D = S::D, QUERIES = S::QUERIES,
		STEP = D / 2 + 4;               /* words of a row; no write collides */
	__shared__ __align__(16) unsigned tile[QUERIES * STEP];
	const BackwardScratch &w = a.w;
	const int blocks = (w.seqlen_q + QUERIES - 1) / QUERIES,
		bh = blockIdx.x / blocks, first = blockIdx.x % blocks * QUERIES,
		lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
	// wait for all parts of these queries
	if (a.deterministic) {
		const int j = first / S::M;
		if (threadIdx.x == 0)
			semaphore_wait(semaphore_at<S>(a, bh, j),
				key_tiles_of(j, a.tiles, S::M, S::N, a.causal));
		__syncthreads();
	} else
		griddepcontrol_wait();
	// bring the accumulators into the order of rows
	const auto *dq_accum = (const float4 *)(w.dq_accum
		+ ((size_t)bh * w.rows + first) * D) + threadIdx.x;
	#pragma unroll
	for (int i = 0; i < QUERIES * D / 512; i++) {
		const float4 x = __ldcs(dq_accum + i * 128);
		float pairs[2][2] = { { x.x, x.y }, { x.z, x.w } };
		int t[2] = { row, row + 8 }, pair[2];
		pair[0] = pair[1] = i * 4 + lane % 4;
		if constexpr (S::WIDE) {
			// trade with the lane that has the pairs' other elements
			const bool odd = lane & 4;
			#pragma unroll
			for (int k = 0; k < 2; k++) {
				const float got = __shfl_xor_sync(0xffffffff,
					odd ? pairs[k][0] : pairs[k][1], 4);
				pairs[k][0] = odd ? got : pairs[k][0];
				pairs[k][1] = odd ? pairs[k][1] : got;
				t[k] = i % (S::M / 8) * 8 + lane % 4 * 2 + odd;
				pair[k] = i / (S::M / 8) * 32 + row / 2 + 4 * k;
			}
		}
		#pragma unroll
		for (int k = 0; k < 2; k++) {
			pairs[k][0] *= a.scale;
			pairs[k][1] *= a.scale;
			if (first + t[k] < w.seqlen_q)
				rope_backward(pairs[k][0], pairs[k][1], a.angles,
					(first + t[k]) * (size_t)(D / 2) + pair[k]);
			tile[t[k] * STEP + pair[k]] = pack<T>(pairs[k][0], pairs[k][1]);
		}
	}
	__syncthreads();                        /* the tile is there */
	#pragma unroll
	for (int i = threadIdx.x; i < QUERIES * D / 8; i += 128) {
		const int t = i / (D / 8), c = i % (D / 8);
		if (first + t < w.seqlen_q)
			*(uint4 *)(row_of<T>(dq, bh, a.H, first + t) + c * 8) =
				*(const uint4 *)(tile + t * STEP + c * 4);
	}
	griddepcontrol_wait();                  /* dK and dV are there too */
#endif
}

// launch the backward pass on Hopper
/* the queries of a tile. At D = 128 80 take less time than 64, but where a tile
 * of keys meets few of them, for what the last tile leaves empty or, causal, the
 * first as well */
static size_t tile_queries(const Attention *a)
{
	const size_t before = a->seqlen_k < a->seqlen_q ? a->seqlen_k : a->seqlen_q,
		met = a->seqlen_q - (a->causal ? before / 2 : 0);
	return a->D <= 64 ? 128
		: a->D == 128 && met >= (a->causal ? 4096 : 2048) ? 80 : 64;
}

/* calls f with the configuration for heads of D elements T; returns whether there
 * is one */
template <class T, class F> static bool with_tiles(const Attention &a, F f)
{
	return with_width(a.D, [&](auto width) {
		constexpr int D = width.value;
		if constexpr (D == 128)
			if (tile_queries(&a) == 80)
				return f(BackwardConfig<T, D, 80>());
		f(BackwardConfig<T, D, D <= 64 ? 128 : 64>());
	});
}

template <class F> static bool with_config(const Attention &a, F f)
{
	switch (a.q.x.type) {
	case BF16: return with_tiles<bf16>(a, f);
	case FP16: return with_tiles<fp16>(a, f);
	default:   return false;
	}
}

/* as BackwardConfig's PADDED has it */
static size_t padded_rows(const Attention *a)
{
	const size_t padded = tile_queries(a) == 80 ? 320 : 128;
	return (a->seqlen_q + padded - 1) / padded * padded;
}

extern "C" size_t cuda_warp_specialized_scratch(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	const size_t rows = a->B * a->H * padded_rows(a);
	return g ? (rows * (a->D + 2) + rows / BLOCK + 1) * sizeof(float) : 0;
}

static BackwardScratch scratch_in(void *scratch, const Attention &a)
{
	const size_t rows = a.B * a.H * padded_rows(&a);
	BackwardScratch w;
	w.dq_accum = (float *)scratch;
	w.L = w.dq_accum + rows * a.D;
	w.delta = w.L + rows;
	w.dq_semaphore = (int *)(w.delta + rows);
	w.tile_counter = w.dq_semaphore + rows / BLOCK;
	w.seqlen_q = (int)a.seqlen_q;
	w.rows = (int)padded_rows(&a);
	return w;
}

template <class S>
static BackwardArguments arguments_of(const Attention &a,
	const AttentionGradient &g,
	BackwardScratch w)
{
	BackwardArguments b;
	b.q = tensor_map(a.q, &a, a.seqlen_q, S::M);
	b.k = tensor_map(a.k, &a, a.seqlen_k, S::N);
	b.v = tensor_map(a.v, &a, a.seqlen_k, S::N);
	b.d_o = tensor_map(g.d_o, &a, a.seqlen_q, S::M);
	b.dk = tensor_map(g.dk, &a, a.seqlen_k, 64);
	b.dv = tensor_map(g.dv, &a, a.seqlen_k, 64);
	b.w = w;
	b.angles = { (const float *)g.cosine.at, (const float *)g.sine.at };
	b.H = (int)a.H;
	b.group = (int)a.group;
	b.seqlen_k = (int)a.seqlen_k;
	b.tiles = (b.seqlen_k + S::N - 1) / S::N;
	b.heads = (int)(a.B * a.H);
	b.causal = a.causal;
	b.deterministic = g.deterministic;
	b.together = b.causal || !b.deterministic ? 1       /* Q, dO; dQ in fp32 */
		: heads_together(a.B * a.H, 8 * a.seqlen_q * a.D);
	b.scale = (float)a.scale;
	return b;
}

/* launches a kernel that may start before the one before it has ended, and waits
 * for it by itself */
template <class... Wanted, class... Given>
static void launch_dependent(Device *d, void (*kernel)(Wanted...),
	unsigned blocks, int threads, size_t nbytes, Given... given)
{
	cudaLaunchAttribute early = {};
	early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	early.val.programmaticStreamSerializationAllowed = 1;
	cudaLaunchConfig_t config = {};
	config.gridDim = dim3(blocks);
	config.blockDim = dim3(threads);
	config.dynamicSmemBytes = nbytes;
	config.stream = cuda_stream(d);
	config.attrs = &early;
	config.numAttrs = 1;
	CUDA(cudaLaunchKernelEx(&config, kernel, Wanted(given)...));
}

extern "C" void cuda_warp_specialized_backward(Device *d, Attention a,
	AttentionGradient g)
{
	assert(a.seqlen_k > 0 && a.scale > 0 && tma_aligned(a.o)
		&& tma_aligned(g.dq));
	assert(a.seqlen_q < 1 << 30 && a.seqlen_k < 1 << 30);
	void *scratch = cuda_scratch(d, cuda_warp_specialized_scratch(d, &a, &g),
		"attention's gradient");
	const BackwardScratch w = scratch_in(scratch, a);
	const size_t heads = a.B * a.H;
	const bool done = with_config(a, [&](auto config) {
		using S = decltype(config);
		const BackwardArguments b = arguments_of<S>(a, g, w);
		CUDA(cudaFuncSetAttribute(warp_specialized_backward<S>,
			cudaFuncAttributeMaxDynamicSharedMemorySize, S::NBYTES));
		backward_preprocess<S>
			<<<blocks_for(heads * w.rows, BLOCK), 128, 0, cuda_stream(d)>>>(w,
			a.o, g.d_o, (const float *)a.L.at, b.H, b.scale);
		LAUNCHED();
		launch_dependent(d, warp_specialized_backward<S>,
			blocks_for(heads * b.tiles, 1), S::THREADS, S::NBYTES, b);
		launch_dependent(d, backward_postprocess<S>,
			blocks_for(heads * ((a.seqlen_q + S::QUERIES - 1) / S::QUERIES), 1),
			128, 0, b, g.dq);
	});
	device_free(d, scratch);
	assert(done && "hopper_supports was asked");
}
