/* attention_wgmma.cu: attention tile by tile, as attention_mma_sync.cu has it,
 * by what Hopper brings: one thread has TMA fetch tiles, and warpgroups
 * multiply them where they lie, in shared memory */
#include "ops/cuda/hopper.cuh"
#include "ops/cuda/hopper.h"
#include "ops/cuda/mma_tiles.cuh"

/* warpgroups and threads of a block; rows of its own part, 64 for each
 * warpgroup */
enum { GROUPS = 2, THREADS = GROUPS * WARPGROUP, OWN = 64 * GROUPS };

// lay out own and visited tiles
/* tensor maps of Q and dO, with boxes as high as a tile of queries, and of K and
 * V, as high as a tile of keys */
struct WgmmaMaps {
	CUtensorMap q, k, v, d;
};

/* N rows of D elements, as Swizzle has them */
template <int N, int D> struct alignas(1024) SwizzledTile {
	char at[N * Swizzle<D>::ROW];
};

/* a block's shared memory: OWNS tiles of its own rows, which stay; two stages of
 * what it visits, one in use and one on its way: two tiles, and L and delta for
 * each of their rows */
template <int OWNS, int N, int D> struct WgmmaShared {
	SwizzledTile<OWN, D> own[OWNS];
	SwizzledTile<N, D> visited[2][2];
	float row_stats[2][2][N];
	Barrier own_full, full[2];
};

/* the block's shared memory, aligned to 1024 bytes, with its barriers ready */
template <class S> __device__ inline S &start_shared()
{
	extern __shared__ char memory[];
	auto &shared = *(S *)(memory + (1024 - smem_address(memory) % 1024) % 1024);
	if (threadIdx.x == 0) {
		barrier_init(&shared.own_full, 1);
		barrier_init(&shared.full[0], 1);
		barrier_init(&shared.full[1], 1);
		fence_barrier_init();
	}
	__syncthreads();
	return shared;
}

// have one thread fetch tiles
/* starts the copy of N rows of a head, counted over sequences of H heads; rows
 * after the last become 0 */
template <int N, int D>
__device__ inline void fetch(const SwizzledTile<N, D> &tile,
	const CUtensorMap &map,
	int first, unsigned head, unsigned H, Barrier &full)
{
	using W = Swizzle<D>;
	#pragma unroll
	for (int i = 0; i < W::BLOCKS; i++)
		tma_load(smem_address(tile.at) + i * N * W::WIDTH, &map, &full,
			EVICT_LAST,
			i * W::WIDTH / 2, first, head % H, head / H);
}

/* starts the copy of the same rows of two tensors of the block's head, or of that
 * which `group` heads share; `full` expects nbytes more */
template <int N, int D>
__device__ inline void fetch_both(const SwizzledTile<N, D> (&tiles)[2],
	const CUtensorMap &x, const CUtensorMap &y, int first, const Attention &a,
	unsigned group, Barrier &full, int nbytes)
{
	const unsigned head = blockIdx.x / group, H = (unsigned)a.H / group;
	barrier_expect_tx(&full, sizeof tiles + nbytes);
	fetch(tiles[0], x, first, head, H, full);
	fetch(tiles[1], y, first, head, H, full);
}

// visit tiles in two stages
/* calls f(j, stage) for the tiles of rows first, first + N ... up to end, each
 * while the next one is copied; fetch(j, stage) starts a copy, and has been
 * called for the first tile */
template <int N, class S, class Fetch, class F>
__device__ __forceinline__ void visit(S &shared, int first, int end,
	Fetch fetch, F f)
{
	barrier_wait(&shared.own_full, 0);
	for (int j = first, i = 0; j < end; j += N, i++) {
		const int stage = i % 2;
		if (threadIdx.x == 0 && j + N < end)
			fetch(j + N, 1 - stage);
		barrier_wait(&shared.full[stage], i / 2 % 2);
		f(j, stage);
		__syncthreads();                /* the stage has been read by all */
	}
}

// multiply the rows of a warpgroup
/* wgmma leaves its accumulators in blocks of 16 columns, as mma.sync does */
template <int C>
__device__ __forceinline__ float (&registers_of(MmaBlock (&x)[C]))[8 * C]
{
	return reinterpret_cast<float (&)[8 * C]>(x);
}

/* starts s = a b^T; a: the warpgroup's 64 of the block's rows */
template <class T, int N, int D>
__device__ __forceinline__ void start_matmul_nt(MmaBlock (&s)[N / 16],
	const SwizzledTile<OWN, D> &a, const SwizzledTile<N, D> &b)
{
	/* the compiler sees that it is the same for all of a warp */
	const int group = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);
	wgmma_fence();
	matmul_nt<T, D, N, OWN>(registers_of(s),
		smem_address(a.at) + group * 64 * Swizzle<D>::WIDTH,
		smem_address(b.at));
	wgmma_commit();
}

/* starts o = o + p b; left: p, rounded, in registers that it uses until then */
template <class T, int N, int D>
__device__ __forceinline__ void start_matmul_add(MmaBlock (&o)[D / 16],
	unsigned (&left)[N / 4], MmaBlock (&p)[N / 16], const SwizzledTile<N, D> &b)
{
	const auto &x = registers_of(p);
	#pragma unroll
	for (int i = 0; i < N / 4; i++)
		left[i] = pack<T>(x[2 * i], x[2 * i + 1]);
	wgmma_fence();
	matmul_add<T, D, N>(registers_of(o), left, smem_address(b.at));
	wgmma_commit();
}

template <int C> __device__ __forceinline__ void pin(MmaBlock (&x)[C])
{
	pin(registers_of(x));
}

/* waits until all matmuls but the latest LEFT are done; x: registers that may be
 * touched from now on */
template <int LEFT, class... X>
__device__ __forceinline__ void wait_and_pin(X &... x)
{
	wgmma_wait<LEFT>();
	(pin(x), ...);
}

// compute attention of 128 queries
/* rows of a block that owns queries: its first, its warp's first; the last key
 * that the warp's first sees; numbers of queries and keys; the key after the
 * last that the block sees */
struct QueryRows {
	int first, top, seen, n, seqlen_k, end;
	float scale;
};

__device__ inline QueryRows query_rows_of(const Attention &a)
{
	const int first = (gridDim.y - 1 - blockIdx.y) * OWN,
		top = first + (int)threadIdx.x / 32 * 16, seqlen_k = (int)a.seqlen_k,
		diagonal = mask_diagonal(&a);
	return { first, top, top + diagonal, (int)a.seqlen_q, seqlen_k,
		keys_seen(first + OWN, seqlen_k, a.causal, diagonal),
		(float)a.scale };
}

/* O = softmax(scale Q K^T) V and L of 128 queries, keys in tiles of N
 * FLOPs: 4 D for each pair of query and key; bytes: Q, O, L once; K, V once
 * from memory, then from the L2 cache for each 128 queries
 * grid: (B H, queries / 128), block: GROUPS warpgroups, BLOCKS at a time on a
 * multiprocessor */
template <class T, int D, int N, int BLOCKS>
__global__ __launch_bounds__(THREADS, BLOCKS)
void wgmma_forward(Attention a, const __grid_constant__ WgmmaMaps maps)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	auto &shared = start_shared<WgmmaShared<1, N, D>>();
	const auto &q = shared.own[0];
	const QueryRows at = query_rows_of(a);
	MmaBlock s[N / 16], o[D / 16] = {};
	unsigned p[N / 4];
	float largest[2] = { -FLT_MAX, -FLT_MAX }, sum[2] = { 0, 0 };
	// fetch keys and values when they are asked for
	const auto fetch_keys = [&](int j, int stage) {
		fetch_both(shared.visited[stage], maps.k, maps.v, j, a, a.group,
			shared.full[stage], 0);
	};
	if (threadIdx.x == 0) {
		barrier_expect_tx(&shared.own_full, sizeof q);
		fetch(q, maps.q, at.first, blockIdx.x, a.H, shared.own_full);
		fetch_keys(0, 0);
	}
	// visit keys and add up their values
	visit<N>(shared, 0, at.end, fetch_keys, [&](int j, int stage) {
		const auto &k = shared.visited[stage][0], &v = shared.visited[stage][1];
		start_matmul_nt<T>(s, q, k);
		wait_and_pin<0>(s);
		apply_mask(s, at.seen, j, at.seqlen_k, a.causal);
		online_softmax(s, o, largest, sum, at.scale);
		start_matmul_add<T>(o, p, s, v);
		wait_and_pin<0>(o, p);
	});
	divide_by_sums(o, largest, sum, (float *)a.L.at + blockIdx.x * (size_t)at.n,
		at.top, at.n, at.scale);
	write_rows(query_rows<T>(a.o, a), at.top, o, true);
#endif
}

// find the gradient of 128 queries
/* wgmma_dq stores L and delta of queries for wgmma_dkv, whole tiles of them:
 * (B H, 2, padded): L log2(e), and delta, the sum of scale dO O over a row */
static __host__ __device__ inline size_t padded(size_t queries)
{
	return (queries + OWN - 1) / OWN * OWN;
}

/* dQ = dS K, dS = P (scale dO V^T - delta); also L and delta
 * FLOPs: 6 D for each pair of query and key; bytes: Q, O, dO, L once, K, V as
 * wgmma_forward; launched as that */
template <class T, int D, int N, int BLOCKS>
__global__ __launch_bounds__(THREADS, BLOCKS)
void wgmma_dq(Attention a, AttentionGradient g,
	const __grid_constant__ WgmmaMaps maps, float *row_stats)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	auto &shared = start_shared<WgmmaShared<2, N, D>>();
	const auto &q = shared.own[0], &d = shared.own[1];
	const QueryRows at = query_rows_of(a);
	MmaBlock p[N / 16], ds[N / 16], dq[D / 16] = {};
	unsigned left[N / 4];
	float L[2], delta[2];
	// fetch keys and values when they are asked for
	const auto fetch_keys = [&](int j, int stage) {
		fetch_both(shared.visited[stage], maps.k, maps.v, j, a, a.group,
			shared.full[stage], 0);
	};
	if (threadIdx.x == 0) {
		fetch_both(shared.own, maps.q, maps.d, at.first, a, 1, shared.own_full,
			0);
		fetch_keys(0, 0);
	}
	// store L and delta of 128 queries
	find_delta<D, 8>(delta, query_rows<const T>(a.o, a),
		query_rows<const T>(g.d_o, a), at.top, at.scale);
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const int row = at.top + low * 8 + threadIdx.x % 32 / 4;
		const float *from = (const float *)a.L.at + blockIdx.x * (size_t)at.n;
		float *to = row_stats + blockIdx.x * 2 * padded(at.n) + row;
		L[low] = row < at.n ? finite_L(from[row] * LOG2_E) : 0;
		if (threadIdx.x % 4 == 0) {
			to[0] = L[low];
			to[padded(at.n)] = delta[low];
		}
	}
	// visit keys and add up the gradient of queries
	visit<N>(shared, 0, at.end, fetch_keys, [&](int j, int stage) {
		const auto &k = shared.visited[stage][0], &v = shared.visited[stage][1];
		start_matmul_nt<T>(p, q, k);
		start_matmul_nt<T>(ds, d, v);
		wait_and_pin<1>(p);
		apply_mask(p, at.seen, j, at.seqlen_k, a.causal);
		each(p, [&](float &x, int low, int, int) {
			x = exp2_approx(fmaf(x, at.scale * LOG2_E, -L[low]));
		});
		wait_and_pin<0>(ds);
		#pragma unroll
		for (int i = 0; i < N / 2; i++) {
			float &x = registers_of(ds)[i];
			x = registers_of(p)[i] * (x * at.scale - delta[i / 2 % 2]);
		}
		start_matmul_add<T>(dq, left, ds, k);
		wait_and_pin<0>(dq, left);
	});
	rope_backward(dq, g, at.top, at.n);
	write_rows(query_rows<T>(g.dq, a), at.top, dq, true);
#endif
}

// find the gradients of 128 keys and values
/* dV = P^T dO, dK = dS^T Q
 * FLOPs: 8 D for each pair of query and key; bytes: K, V once; Q, dO, L and
 * delta for each 128 keys
 * grid: (B H, keys / 128), block: GROUPS warpgroups */
template <class T, int D, int N>
__global__ __launch_bounds__(THREADS, 1)
void wgmma_dkv(Attention a, AttentionGradient g,
	const __grid_constant__ WgmmaMaps maps, const float *row_stats)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	auto &shared = start_shared<WgmmaShared<2, N, D>>();
	const auto &k = shared.own[0], &v = shared.own[1];
	const int first = blockIdx.y * OWN, top = first + threadIdx.x / 32 * 16,
		n = (int)a.seqlen_q, diagonal = mask_diagonal(&a),
		start = first_query_of(first, a.causal, diagonal) / N * N;
	const float scale = (float)a.scale;
	MmaBlock p[N / 16], ds[N / 16], dk[D / 16] = {}, dv[D / 16] = {};
	unsigned p_operand[N / 4], ds_operand[N / 4];
	// fetch queries, L and delta when they are asked for
	const auto fetch_queries = [&](int j, int stage) {
		const float *from = row_stats + blockIdx.x * 2 * padded(n) + j;
		auto &to = shared.row_stats[stage];
		auto &full = shared.full[stage];
		fetch_both(shared.visited[stage], maps.q, maps.d, j, a, 1, full,
			sizeof to);
		bulk_load(smem_address(to[0]), from, sizeof to[0], &full);
		bulk_load(smem_address(to[1]), from + padded(n), sizeof to[1], &full);
	};
	if (threadIdx.x == 0) {
		fetch_both(shared.own, maps.k, maps.v, first, a, a.group,
			shared.own_full, 0);
		if (start < n)
			fetch_queries(start, 0);
	}
	// visit queries and add up the gradients of keys and values
	visit<N>(shared, start, n, fetch_queries, [&](int j, int stage) {
		const auto &q = shared.visited[stage][0], &d = shared.visited[stage][1];
		const auto &L = shared.row_stats[stage][0],
			&delta = shared.row_stats[stage][1];
		start_matmul_nt<T>(p, k, q);
		start_matmul_nt<T>(ds, v, d);
		wait_and_pin<1>(p);
		// exponentiate scores of keys
		if (a.causal && j + diagonal < top + 15) /* the diagonal is there */
			each(p, [&](float &x, int, int i, int column) {
				x = j + column + diagonal < top + i ? -INFINITY : x;
			});
		each(p, [&](float &x, int, int, int column) {
			x = exp2_approx(fmaf(x, scale * LOG2_E, -L[column]));
		});
		wait_and_pin<0>(ds);
		#pragma unroll
		for (int i = 0; i < N / 2; i++) {
			const int column = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
			float &x = registers_of(ds)[i];
			x = registers_of(p)[i] * (x * scale - delta[column]);
		}
		start_matmul_add<T>(dv, p_operand, p, d);
		start_matmul_add<T>(dk, ds_operand, ds, q);
		wait_and_pin<0>(dv, dk, p_operand, ds_operand);
	});
	rope_backward(dk, g, top, (int)a.seqlen_k);
	write_rows(own_key_rows<T>(g.dk, a), top, dk, true);
	write_rows(own_key_rows<T>(g.dv, a), top, dv, true);
#endif
}

// launch attention by warpgroups
/* rows of the tiles that each kernel visits, and blocks on a multiprocessor, as
 * registers allow */
template <int D> struct TileSizes {
	static constexpr int FORWARD = D <= 64 ? 128 : 64, FORWARD_BLOCKS = 2,
		KEYS = D <= 64 ? 64 : 128, KEYS_BLOCKS = D <= 64 ? 2 : 1,
		QUERIES = D <= 64 ? 128 : 64;
};

/* tensor maps of a; d: dO, or NULL in the forward pass */
static WgmmaMaps maps_of(const Attention &a, const Heads *d, unsigned query_rows,
	unsigned key_rows)
{
	WgmmaMaps maps = {};
	maps.q = tensor_map(a.q, &a, a.seqlen_q, query_rows);
	maps.k = tensor_map(a.k, &a, a.seqlen_k, key_rows);
	maps.v = tensor_map(a.v, &a, a.seqlen_k, key_rows);
	if (d)
		maps.d = tensor_map(*d, &a, a.seqlen_q, query_rows);
	return maps;
}

/* calls f with a value of the stored type and D as a Constant; returns whether
 * there are kernels for both */
template <class F> static bool with_heads(Type type, size_t D, F f)
{
	const auto with = [&](auto stored) {
		return with_width(D, [&](auto width) { f(stored, width); });
	};
	return type == BF16 ? with(bf16()) : type == FP16 && with(fp16());
}

template <class S, class Kernel, class... Arguments>
static void launch(Device *d, Kernel kernel, const Attention &a, size_t rows,
	Arguments... arguments)
{
	const dim3 grid(blocks_for(a.B * a.H, 1), blocks_for(rows, OWN));
	const int nbytes = sizeof(S) + 1024;    /* its start is rounded up */
	assert(grid.y <= 65535 && "as many tiles as a grid has rows");
	CUDA(cudaFuncSetAttribute(kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, nbytes));
	kernel<<<grid, THREADS, nbytes, cuda_stream(d)>>>(a, arguments...);
	LAUNCHED();
}

extern "C" void cuda_wgmma_forward(Device *d, Attention a)
{
	assert(a.seqlen_k > 0 && a.scale > 0);
	const bool done = with_heads(a.q.x.type, a.D, [&](auto stored, auto width) {
		using T = decltype(stored);
		constexpr int D = width.value, N = TileSizes<D>::FORWARD;
		launch<WgmmaShared<1, N, D>>(d,
			wgmma_forward<T, D, N, TileSizes<D>::FORWARD_BLOCKS>, a, a.seqlen_q,
			maps_of(a, NULL, OWN, N));
	});
	assert(done && "hopper_supports was asked");
}

extern "C" size_t cuda_wgmma_scratch(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	return g ? a->B * a->H * 2 * padded(a->seqlen_q) * sizeof(float) : 0;
}

extern "C" void cuda_wgmma_backward(Device *d, Attention a, AttentionGradient g)
{
	assert(a.seqlen_k > 0 && a.scale > 0);
	float *row_stats = (float *)cuda_scratch(d, cuda_wgmma_scratch(d, &a, &g),
		"attention's L and delta");
	const bool done = with_heads(a.q.x.type, a.D, [&](auto stored, auto width) {
		using T = decltype(stored);
		constexpr int D = width.value, KEYS = TileSizes<D>::KEYS,
			QUERIES = TileSizes<D>::QUERIES;
		launch<WgmmaShared<2, KEYS, D>>(d,
			wgmma_dq<T, D, KEYS, TileSizes<D>::KEYS_BLOCKS>, a, a.seqlen_q, g,
			maps_of(a, &g.d_o, OWN, KEYS), row_stats);
		launch<WgmmaShared<2, QUERIES, D>>(d, wgmma_dkv<T, D, QUERIES>, a,
			a.seqlen_k, g, maps_of(a, &g.d_o, QUERIES, OWN), row_stats);
	});
	device_free(d, row_stats);
	assert(done && "hopper_supports was asked");
}
