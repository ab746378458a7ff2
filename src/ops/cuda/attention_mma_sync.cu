/* attention_mma_sync.cu: attention tile by tile, forward and backward, on
 * tensor cores */
#include "ops/cuda/mma_tiles.cuh"

// compute attention of 64 queries
/* what a block of threads that owns queries reads, and where its keys end */
template <class T> struct QueryBlock {
	HeadRows<const T> Q, K, V;
	/* rows: the block's first in the head, the warp's first in the block and in
	 * the head; last key that the warp's first sees; the key after the last */
	int first, warp_row, top, seen, end;
	float scale;
};

template <class T>
__device__ inline QueryBlock<T> query_block_of(const Attention &a)
{
	const auto Q = query_rows<const T>(a.q, a);
	const auto K = key_rows<const T>(a.k, a), V = key_rows<const T>(a.v, a);
	const int first = (gridDim.y - 1 - blockIdx.y) * M,
		warp_row = threadIdx.x / 32 * 16,
		diagonal = a.bottom_right ? K.n - Q.n : 0;
	return { Q, K, V, first, warp_row, first + warp_row,
		first + warp_row + diagonal,
		keys_seen(first + M, K.n, a.causal, diagonal), (float)a.scale };
}

/* O = softmax(scale Q K^T) V and L of 64 queries, keys in tiles of N
 * FLOPs: 4 D for each pair of query and key; bytes: Q, O, L once; K, V once from
 * memory, then from the L2 cache for each 64 queries
 * grid: (B H, queries / 64), block: WARPS warps */
template <class F, int D, int N>
__global__ __launch_bounds__(32 * WARPS)
void mma_sync_forward(Attention a, bool wide)
{
	using T = typename F::Stored;
	extern __shared__ __align__(16) char memory[];
	auto &q = *(PaddedTile<T, M, D> *)memory;
	auto &k = *(PaddedTile<T, N, D> *)(&q + 1), &v = *(&k + 1);
	const auto [Q, K, V, first, warp_row, top, seen, end, scale] =
		query_block_of<T>(a);
	MmaBlock s[N / 16], o[D / 16] = {};
	float largest[2] = { -FLT_MAX, -FLT_MAX }, sum[2] = { 0, 0 };
	if (first >= Q.n)               /* a packed sequence is shorter */
		return;
	// start the copies of Q and the first K
	fetch_tile(q, Q, first, wide);
	fetch_tile(k, K, 0, wide);
	cp_async_commit_group();
	// visit tiles of keys, and multiply by mma.sync
	for (int j = 0; j < end; j += N) {
		fetch_tile(v, V, j, wide);
		cp_async_commit_group();
		cp_async_wait_and_sync<1>();             /* k is there */
		matmul_nt<F>(s, q.at + warp_row * q.stride, k);
		__syncthreads();                /* k has been read by all */
		if (j + N < end)
			fetch_tile(k, K, j + N, wide);
		cp_async_commit_group();
		apply_mask(s, seen, j, K.n, a.causal);
		online_softmax(s, o, largest, sum, scale);
		cp_async_wait_and_sync<1>();
		matmul_add<F>(o, s, v);
		__syncthreads();
	}
	divide_by_sums(o, largest, sum, (float *)a.L.at + rows_before(a), top, Q.n,
		scale);
	write_rows(query_rows<T>(a.o, a), top, o, wide);
}

// find the gradient of 64 queries
/* dQ = dS K, dS = P (scale dO V^T - delta); also delta, (B, H, queries)
 * FLOPs: 6 D for each pair of query and key; bytes: Q, O, dO, L once, K, V as
 * mma_sync_forward; launched as that */
template <class F, int D, int N>
__global__ __launch_bounds__(32 * WARPS) void mma_sync_dq(Attention a,
	AttentionGradient g, float *deltas, bool wide)
{
	using T = typename F::Stored;
	extern __shared__ __align__(16) char memory[];
	auto &q = *(PaddedTile<T, M, D> *)memory, &d = *(&q + 1);
	auto &k = *(PaddedTile<T, N, D> *)(&d + 1), &v = *(&k + 1);
	const auto [Q, K, V, first, warp_row, top, seen, end, scale] =
		query_block_of<T>(a);
	const auto dO = query_rows<const T>(g.d_o, a);
	MmaBlock p[N / 16], ds[N / 16], dq[D / 16] = {};
	float L[2], delta[2];
	if (first >= Q.n)
		return;
	// start the copies of Q, dO and the first V
	fetch_tile(q, Q, first, wide);
	fetch_tile(d, dO, first, wide);
	fetch_tile(v, V, 0, wide);
	cp_async_commit_group();
	// find delta of the queries, and read L
	find_delta<D, 1>(delta, query_rows<const T>(a.o, a), dO, top,
		scale);
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const int row = top + low * 8 + threadIdx.x % 32 / 4;
		const size_t at = rows_before(a) + row;
		L[low] = row < Q.n ? finite_L(((const float *)a.L.at)[at]) : 0;
		if (row < Q.n && threadIdx.x % 4 == 0)
			deltas[at] = delta[low];
	}
	for (int j = 0; j < end; j += N) {
		fetch_tile(k, K, j, wide);
		cp_async_commit_group();
		cp_async_wait_and_sync<1>();
		matmul_nt<F>(ds, d.at + warp_row * d.stride, v);
		__syncthreads();
		if (j + N < end)
			fetch_tile(v, V, j + N, wide);
		cp_async_commit_group();
		// multiply Q by K, and mask the scores
		cp_async_wait_and_sync<1>();
		matmul_nt<F>(p, q.at + warp_row * q.stride, k);
		apply_mask(p, seen, j, K.n, a.causal);
		// turn scores and dP into dS
		#pragma unroll
		for (int i = 0; i < N / 2; i++) {
			const int n = i / 8, low = i / 2 % 2;
			float &x = ds[n].at[i / 4 % 2][i % 4];
			x = exp2_approx((p[n].at[i / 4 % 2][i % 4] * scale
				- L[low]) * LOG2_E)
				* (x * scale - delta[low]);
		}
		matmul_add<F>(dq, ds, k);
		__syncthreads();
	}
	rope_backward(dq, g, top, Q.n);
	write_rows(query_rows<T>(g.dq, a), top, dq, wide);
}

// find the gradients of 64 keys and values
/* copies a number of each of N queries from `first` on; 0 after the last query */
template <int N>
__device__ inline void fetch_row_stats(float *to, const float *from, int first,
	int n)
{
	for (int i = threadIdx.x; i < N; i += 32 * WARPS)
		to[i] = first + i < n ? from[first + i] : 0;
}

/* dV = P^T dO, dK = dS^T Q
 * FLOPs: 8 D for each pair of query and key; bytes: K, V once; Q, dO, L, delta
 * for each 64 keys
 * grid: (B H, keys / 64), block: WARPS warps */
template <class F, int D, int N>
__global__ __launch_bounds__(32 * WARPS) void mma_sync_dkv(Attention a,
	AttentionGradient g, const float *deltas, bool wide)
{
	using T = typename F::Stored;
	extern __shared__ __align__(16) char memory[];
	auto &k = *(PaddedTile<T, M, D> *)memory, &v = *(&k + 1);
	auto &q = *(PaddedTile<T, N, D> *)(&v + 1), &d = *(&q + 1);
	float *L = (float *)(&d + 1), *delta = L + N;
	// find the rows of these keys, and the first queries that see them
	const auto Q = query_rows<const T>(a.q, a),
		dO = query_rows<const T>(g.d_o, a),
		K = key_rows<const T>(a.k, a),
		V = key_rows<const T>(a.v, a);
	const int first = blockIdx.y * M, warp_row = threadIdx.x / 32 * 16,
		top = first + warp_row, diagonal = a.bottom_right ? K.n - Q.n : 0,
		start = first_query_of(first, a.causal, diagonal) / N * N;
	const float scale = (float)a.scale;
	const size_t before = rows_before(a);
	MmaBlock p[N / 16], ds[N / 16], dk[D / 16] = {}, dv[D / 16] = {};
	if (first >= K.n)
		return;
	// start the copies of K, V and the first dO
	fetch_tile(k, K, first, wide);
	fetch_tile(v, V, first, wide);
	fetch_tile(d, dO, start, wide);
	fetch_row_stats<N>(delta, deltas + before, start, Q.n);
	cp_async_commit_group();
	for (int j = start; j < Q.n; j += N) {
		fetch_tile(q, Q, j, wide);
		fetch_row_stats<N>(L, (const float *)a.L.at + before, j, Q.n);
		cp_async_commit_group();
		cp_async_wait_and_sync<1>();
		matmul_nt<F>(ds, v.at + warp_row * v.stride, d);
		cp_async_wait_and_sync<0>();
		matmul_nt<F>(p, k.at + warp_row * k.stride, q);
		// turn scores into P, masked
		each(p, [&](float &x, int, int i, int column) {
			const bool hidden = a.causal && j + column + diagonal < top + i;
			x = hidden ? 0 : exp2_approx((x * scale - finite_L(L[column])) * LOG2_E);
		});
		matmul_add<F>(dv, p, d);
		// turn P and dP into dS
		#pragma unroll
		for (int i = 0; i < N / 2; i++) {
			const int n = i / 8, column = n * 16 + i / 4 % 2 * 8
				+ threadIdx.x % 4 * 2 + i % 2;
			float &x = ds[n].at[i / 4 % 2][i % 4];
			x = p[n].at[i / 4 % 2][i % 4] * (x * scale - delta[column]);
		}
		__syncthreads();
		if (j + N < Q.n) {
			fetch_tile(d, dO, j + N, wide);
			fetch_row_stats<N>(delta, deltas + before, j + N, Q.n);
		}
		cp_async_commit_group();
		matmul_add<F>(dk, ds, q);
		__syncthreads();
	}
	rope_backward(dk, g, top, K.n);
	write_rows(own_key_rows<T>(g.dk, a), top, dk, wide);
	write_rows(own_key_rows<T>(g.dv, a), top, dv, wide);
}

// launch attention
/* rows of the tiles that are copied in the loop */
template <class T, int D> constexpr int tile_rows = sizeof(T) == 2 || D <= 64
	? 64 : 32;

/* bytes of shared memory: `fixed` tiles of 64 rows, two of N, `numbers` floats */
template <class T, int D, int N>
constexpr int shared_bytes(int fixed, int numbers)
{
	static_assert(M % N == 0 && D % 16 == 0, "tiles end where blocks do");
	return fixed * sizeof(PaddedTile<T, M, D>) + 2 * sizeof(PaddedTile<T, N, D>)
		+ numbers * sizeof(float);
}

/* calls f with a value of the class of operands and D as a Constant; returns
 * whether there are kernels for both */
template <class F> static bool with_heads(Type type, size_t D, F f)
{
	const auto with = [&](auto operands) {
		const auto call = [&](auto width) { f(operands, width); };
		switch (D) {
		case 96:  call(Constant<96>()); return true;
		case 256: call(Constant<256>()); return true;
		default:  return with_width(D, call);
		}
	};
	switch (type) {
	case FP32: return with(OperandsOf<FP32>::OperandClass());
	case TF32: return with(OperandsOf<TF32>::OperandClass());
	case BF16: return with(OperandsOf<BF16>::OperandClass());
	case FP16: return with(OperandsOf<FP16>::OperandClass());
	default:   return false;
	}
}

extern "C" bool cuda_mma_sync_supports(Device *d, const Attention *a,
	const AttentionGradient *)
{
	int device, most, need = 0;
	CUDA(cudaGetDevice(&device));
	CUDA(cudaDeviceGetAttribute(&most,
		cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
	const bool made = with_heads(a->q.x.type, a->D, [&](auto operands, auto D) {
		using T = typename decltype(operands)::Stored;
		constexpr int N = tile_rows<T, D.value>;
		need = shared_bytes<T, D.value, N>(2, 2 * N);
	});
	return made && need <= most;
}

static bool packs(Heads x)
{
	const size_t N = 16 / type_size(x.x.type);
	return packs(x.x, N) && x.batch % N == 0 && x.row % N == 0
		&& x.head % N == 0;
}

template <class Kernel, class... Arguments>
static void launch(Device *d, Kernel kernel, const Attention &a, size_t rows,
	int nbytes, Arguments... arguments)
{
	const dim3 grid(blocks_for(a.B * a.H, 1), blocks_for(rows, M));
	assert(grid.y <= 65535 && "as many tiles as a grid has rows");
	CUDA(cudaFuncSetAttribute(kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, nbytes));
	kernel<<<grid, 32 * WARPS, nbytes, cuda_stream(d)>>>(a, arguments...);
	LAUNCHED();
}

extern "C" void cuda_mma_sync_forward(Device *d, Attention a)
{
	assert(a.seqlen_k > 0 && a.scale > 0);
	const bool wide = packs(a.q) && packs(a.k) && packs(a.v) && packs(a.o);
	const bool done = with_heads(a.q.x.type, a.D, [&](auto operands, auto D) {
		using F = decltype(operands);
		launch(d, mma_sync_forward<F, D.value, 64>, a, a.seqlen_q,
			shared_bytes<typename F::Stored, D.value, 64>(1, 0), wide);
	});
	assert(done && "cuda_mma_sync_supports was asked");
}

/* bytes for delta, fp32, stored as L is: mma_sync_dq leaves it to mma_sync_dkv */
extern "C" size_t cuda_mma_sync_scratch(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	const size_t rows = a->total_q ? a->total_q : a->B * a->seqlen_q;
	return g ? a->H * rows * sizeof(float) : 0;
}

extern "C" void cuda_mma_sync_backward(Device *d, Attention a,
	AttentionGradient g)
{
	const bool wide = packs(a.q) && packs(a.k) && packs(a.v) && packs(g.d_o)
		&& packs(g.dq) && packs(g.dk) && packs(g.dv);
	float *deltas = (float *)cuda_scratch(d, cuda_mma_sync_scratch(d, &a, &g),
		"attention's delta");
	const bool done = with_heads(a.q.x.type, a.D, [&](auto operands, auto D) {
		using F = decltype(operands);
		using T = typename F::Stored;
		constexpr int N = tile_rows<T, D.value>;
		launch(d, mma_sync_dq<F, D.value, N>, a, a.seqlen_q,
			shared_bytes<T, D.value, N>(2, 0), g, deltas, wide);
		launch(d, mma_sync_dkv<F, D.value, N>, a, a.seqlen_k,
			shared_bytes<T, D.value, N>(2, 2 * N), g, deltas, wide);
	});
	device_free(d, deltas);
	assert(done && "cuda_mma_sync_supports was asked");
}
