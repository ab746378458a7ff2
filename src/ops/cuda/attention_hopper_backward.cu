/* attention_hopper_backward.cu: attention backward on Hopper: the kernels
 * 1. prepare_backward: L log2(e), delta; sums of dQ become 0
 * 2. attend_backward: a block of threads owns N keys and visits the queries
 *    that see them, M at a time; dK, dV stay in registers; dQ is added to fp32
 *    sums in global memory
 * 3. finish_backward: dQ = scale sums, turned back and rounded */
#include "ops/cuda/hopper.h"
#include "ops/cuda/hopper_backward_keys.cuh"

/* two numbers of 16 bits */
template <class T> __device__ inline float2 widen_pair(unsigned x)
{
	if constexpr (std::is_same<T, fp16>::value)
		return __half22float2(*(const __half2 *)&x);
	else
		return { __uint_as_float(x << 16), __uint_as_float(x & 0xffff0000) };
}

/* row t of head bh */
template <class T>
__device__ inline T *row_of(const Heads &x, int bh, int H, int t)
{
	return (T *)x.x.at + bh / H * x.batch + bh % H * x.head + t * x.row;
}
/* 64 queries: L and delta, padded as if P and delta were 0; no sums yet
 * bytes: O, dO, L once, sums once
 * grid: B H rows / 64 */
template <class T, int D>
__global__ __launch_bounds__(128) void prepare_backward(Work w, Heads o,
	Heads d_o, const float *L, int H)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	constexpr int TEAM = D > 64 ? 16 : D / 8,       /* threads of a row */
		TIMES = BLOCK * TEAM / 128;
	const int blocks = w.rows / BLOCK, bh = blockIdx.x / blocks,
		first = blockIdx.x % blocks * BLOCK + threadIdx.x / TEAM,
		c = threadIdx.x % TEAM;
	let_next_kernel_start();
	using Words = Pack<unsigned, 4>;
	Words x[TIMES], y[TIMES];
	#pragma unroll
	for (int i = 0; i < TIMES; i++) {
		const int t = first + i * (128 / TEAM);
		x[i] = y[i] = {};
		if (t < w.queries && c * 8 < D) {
			x[i] = *(const Words *)(row_of<T>(o, bh, H, t) + c * 8);
			y[i] = *(const Words *)(row_of<T>(d_o, bh, H, t) + c * 8);
		}
	}
	auto *sums = (float4 *)(w.sums + (size_t)blockIdx.x * (BLOCK * D));
	#pragma unroll
	for (int i = 0; i < BLOCK * D / 4 / 128; i++)
		sums[i * 128 + threadIdx.x] = make_float4(0, 0, 0, 0);
	if (threadIdx.x == 0)
		w.turns[blockIdx.x] = 0;
	if (threadIdx.x == 0 && blockIdx.x == 0)
		*w.ticket = 0;
	#pragma unroll
	for (int i = 0; i < TIMES; i++) {
		const int t = first + i * (128 / TEAM);
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
		const size_t to = (size_t)bh * w.rows + t / 16 * 16 + place_of(t % 16);
		if (c == 0) {
			w.delta[to] = sum;
			w.L[to] = t < w.queries ? L[(size_t)bh * w.queries + t] * LOG2_E
				: INFINITY;
		}
	}
#endif
}
/* FLOPs: 10 D for each pair of query and key; bytes: K, V, dK, dV once; Q, dO
 * and twice (read and written) the sums of dQ, in the L2 cache, for each N keys
 * grid: B H key tiles; block: a warpgroup that starts copies, perhaps one for
 * dQ, and one for each 64 keys */
template <class S>
__global__ __launch_bounds__(S::THREADS, 1)
void attend_backward(const __grid_constant__ Backward a)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ char memory[];
	const unsigned shared = (shared_at(memory) + 1023) / 1024 * 1024;
	auto *bars = (Barriers<S> *)(memory + (shared - shared_at(memory))
		+ S::BARRIERS);
	static_assert(sizeof(*bars) <= 256, "they have their place");
	const int group = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);
	if (threadIdx.x == 0) {
		start_barriers(bars);
		prefetch_map(&a.q);
		prefetch_map(&a.k);
		prefetch_map(&a.v);
		prefetch_map(&a.d_o);
	}
	await_kernels_before();
	if (threadIdx.x == 0)
		bars->ticket = a.in_order ? atomicAdd(a.w.ticket, 1) : blockIdx.x;
	__syncthreads();                        /* barriers and ticket are there */
	let_next_kernel_start();
	const Place p = place_of_ticket<S>(a, bars->ticket);
	if (group == 0) {
		registers_down<S::LOW>();
		if (threadIdx.x == 0)
			produce<S>(a, p, shared, bars);
		else if (threadIdx.x == 32 || threadIdx.x == 64)
			add_queries<S>(a, p, shared, bars, threadIdx.x / 64);
	} else if (S::HELPER && group == 1) {
		registers_down<S::MIDDLE>();
		multiply_queries<S>(p, shared, bars);
	} else {
		registers_up<S::HIGH>();
		consume<S>(a, p, shared, bars, group - 1 - S::HELPER);
	}
#endif
}
/* dQ of 64 queries
 * bytes: sums once, dQ once
 * grid: B H ceil(queries / 64) */
template <class T, int D>
__global__ __launch_bounds__(128) void finish_backward(Work w, Heads dq,
	Angles angles, float scale, int H)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	constexpr int STEP = D / 2 + 4;     /* words of a row; no write collides */
	__shared__ __align__(16) unsigned tile[BLOCK * STEP];
	const int blocks = (w.queries + BLOCK - 1) / BLOCK,
		bh = blockIdx.x / blocks, first = blockIdx.x % blocks * BLOCK,
		lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
	await_kernels_before();
	const auto *sums = (const float4 *)(w.sums
		+ ((size_t)bh * w.rows + first) * D) + threadIdx.x;
	#pragma unroll
	for (int c = 0; c < D / 8; c++) {
		float4 x = __ldcs(sums + c * 128);
		float pairs[2][2] = { { x.x * scale, x.y * scale },
			{ x.z * scale, x.w * scale } };
		#pragma unroll
		for (int low = 0; low < 2; low++) {
			const int t = row + 8 * low;
			if (first + t < w.queries)
				turn_back(pairs[low][0], pairs[low][1], angles,
					(first + t) * (size_t)(D / 2) + c * 4 + lane % 4);
			tile[t * STEP + c * 4 + lane % 4] = pack<T>(pairs[low][0],
				pairs[low][1]);
		}
	}
	__syncthreads();                        /* the tile is there */
	#pragma unroll
	for (int i = threadIdx.x; i < BLOCK * D / 8; i += 128) {
		const int t = i / (D / 8), c = i % (D / 8);
		if (first + t < w.queries)
			*(uint4 *)(row_of<T>(dq, bh, H, first + t) + c * 8) =
				*(const uint4 *)(tile + t * STEP + c * 4);
	}
#endif
}
/* f(plan) for heads of D numbers of this type; is there one? */
template <class F> static bool with_plan(Type type, size_t D, F f)
{
	const auto with = [&](auto stored) {
		using T = decltype(stored);
		return with_width(D, [&](auto width) { f(Plan<T, width.value>()); });
	};
	switch (type) {
	case BF16: return with(bf16());
	case FP16: return with(fp16());
	default:   return false;
	}
}
static size_t padded_rows(const Attention *a)
{
	return (a->queries + PADDED - 1) / PADDED * PADDED;
}

extern "C" size_t cuda_hopper_backward_scratch(const Attention *a)
{
	const size_t rows = a->B * a->H * padded_rows(a);
	return (rows * (a->D + 2) + rows / BLOCK + 1) * sizeof(float);
}

static Work work_in(void *scratch, const Attention &a)
{
	const size_t rows = a.B * a.H * padded_rows(&a);
	Work w;
	w.sums = (float *)scratch;
	w.L = w.sums + rows * a.D;
	w.delta = w.L + rows;
	w.turns = (int *)(w.delta + rows);
	w.ticket = w.turns + rows / BLOCK;
	w.queries = (int)a.queries;
	w.rows = (int)padded_rows(&a);
	return w;
}
template <class S>
static Backward arguments_of(const Attention &a, const AttentionGradient &g,
	Work w)
{
	Backward b;
	b.q = hopper_map(a.q, &a, a.queries, S::M);
	b.k = hopper_map(a.k, &a, a.keys, S::N);
	b.v = hopper_map(a.v, &a, a.keys, S::N);
	b.d_o = hopper_map(g.o, &a, a.queries, S::M);
	b.dk = hopper_map(g.k, &a, a.keys, 64);
	b.dv = hopper_map(g.v, &a, a.keys, 64);
	b.w = w;
	b.angles = { (const float *)g.cosine.at, (const float *)g.sine.at };
	b.H = (int)a.H;
	b.keys = (int)a.keys;
	b.tiles = (b.keys + S::N - 1) / S::N;
	b.causal = a.causal;
	b.in_order = !g.any_order;
	b.scale = (float)a.scale;
	return b;
}
/* the kernel awaits those before it by itself */
template <class... Wanted, class... Given>
static void launch_early(void (*kernel)(Wanted...), unsigned blocks,
	int threads, size_t nbytes, Given... given)
{
	cudaLaunchAttribute early = {};
	early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	early.val.programmaticStreamSerializationAllowed = 1;
	cudaLaunchConfig_t config = {};
	config.gridDim = dim3(blocks);
	config.blockDim = dim3(threads);
	config.dynamicSmemBytes = nbytes;
	config.stream = cuda_stream();
	config.attrs = &early;
	config.numAttrs = 1;
	CUDA(cudaLaunchKernelEx(&config, kernel, Wanted(given)...));
}
extern "C" void cuda_hopper_backward(Attention a, AttentionGradient g)
{
	assert(a.keys > 0 && a.scale > 0 && hopper_moves(a.o) && hopper_moves(g.q));
	assert(a.queries < 1 << 30 && a.keys < 1 << 30);
	void *scratch = cuda_scratch(cuda_hopper_backward_scratch(&a),
		"attention's gradient");
	const Work w = work_in(scratch, a);
	const size_t heads = a.B * a.H;
	const bool done = with_plan(a.q.x.type, a.D, [&](auto plan) {
		using S = decltype(plan);
		using T = typename S::T;
		const Backward b = arguments_of<S>(a, g, w);
		CUDA(cudaFuncSetAttribute(attend_backward<S>,
			cudaFuncAttributeMaxDynamicSharedMemorySize, S::NBYTES));
		prepare_backward<T, S::D>
			<<<blocks_for(heads * w.rows, BLOCK), 128, 0, cuda_stream()>>>(w,
			a.o, g.o, (const float *)a.L.at, b.H);
		LAUNCHED();
		launch_early(attend_backward<S>, blocks_for(heads * b.tiles, 1),
			S::THREADS, S::NBYTES, b);
		launch_early(finish_backward<T, S::D>,
			blocks_for(heads * ((a.queries + BLOCK - 1) / BLOCK), 1), 128, 0, w,
			g.q, b.angles, b.scale, b.H);
	});
	cuda_release(scratch);
	assert(done && "hopper_takes was asked");
}
