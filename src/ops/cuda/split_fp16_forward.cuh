/* split_fp16_forward.cuh: attention in split fp16, forward */
#ifndef OPS_CUDA_SPLIT_FP16_FORWARD_CUH
#define OPS_CUDA_SPLIT_FP16_FORWARD_CUH

#include "ops/cuda/split_fp16_tiles.cuh"

// compute attention of fp32 queries
/* arguments of the forward kernel */
struct SplitForward {
	Attention a;
	SplitTiles q, k, v;
	bool wide;                      /* may O be written in pairs? */
};

/* the largest score of each of a thread's two rows, and the sum of this
 * thread's exponentials relative to it, in P_UNIT */
struct SplitRowStats {
	float largest[2], sum[2];
};

// exponentiate scores against the largest so far
/* turns scores into exponentials relative to the largest so far, in P_UNIT;
 * rescale: the factor by which earlier sums are rescaled */
__device__ __forceinline__ void online_softmax(float (&s)[32], SplitRowStats &w,
	float (&rescale)[2], float scale)
{
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		float most[2] = { s[2 * low], s[2 * low + 1] };
		#pragma unroll
		for (int i = 2; i < 16; i++)
			most[i % 2] = fmaxf(most[i % 2], s[i / 2 * 4 + 2 * low + i % 2]);
		const float largest = fmaxf(w.largest[low],
			quad_max(fmaxf(most[0], most[1])) * scale);
		rescale[low] = exp2_approx((w.largest[low] - largest) * LOG2_E);
		w.largest[low] = largest;
	}
	float offset[2];
	settle_huge_scores(s, offset, w.largest, scale);
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		float sum[2] = { 0, 0 };
		#pragma unroll
		for (int i = 0; i < 16; i++) {
			float &x = s[i / 2 * 4 + 2 * low + i % 2];
			x = exp_score(x, scale, offset[low]);
			sum[i % 2] += x;
		}
		w.sum[low] = fmaf(w.sum[low], rescale[low], sum[0] + sum[1]);
	}
}

// join what two warpgroups have summed
/* adds the second warpgroup's sums to those of the first; each are relative to
 * their own largest scores, and the second's pass through shared memory */
template <int D>
__device__ inline void join_row_stats(float (&o)[D / 2], SplitRowStats &w,
	unsigned at, int group)
{
	const unsigned row_stats = at + D / 2 * 512;
	named_barrier_sync(1, GROUPS * WARPGROUP); /* all tiles have been read */
	if (group == GROUPS - 1) {
		const float own_stats[4] = { w.largest[0], w.largest[1], w.sum[0],
			w.sum[1] };
		store_accumulators(at, o);
		store_accumulators(row_stats, own_stats);
	}
	named_barrier_sync(1, GROUPS * WARPGROUP); /* the sums are there */
	if (group > 0)
		return;
	// add the other's accumulators to these
	float keep[2], other[4], add[2];
	with_accumulators<4>(row_stats, [&](int i, float x) { other[i] = x; });
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const float largest = fmaxf(w.largest[low], other[low]);
		keep[low] = exp2_approx((w.largest[low] - largest) * LOG2_E);
		add[low] = exp2_approx((other[low] - largest) * LOG2_E);
		w.largest[low] = largest;
		w.sum[low] = w.sum[low] * keep[low] + other[2 + low] * add[low];
	}
	with_accumulators<D / 2>(at, [&](int i, float x) {
		o[i] = o[i] * keep[i / 2 % 2] + x * add[i / 2 % 2];
	});
}

// finish fp32 queries
/* stores O and L of 64 rows */
template <int D>
__device__ inline void finish_queries(float (&o)[D / 2], const SplitRowStats &w,
	const SplitForward &f, const BlockTile &p)
{
	const int first = p.tile * ROWS + row_of_thread(), n = (int)f.a.seqlen_q;
	float inverse[2];
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const int row = first + 8 * low;
		const float total = quad_sum(w.sum[low]);
		inverse[low] = inverse_sum(total);
		if (row < n && threadIdx.x % 4 == 0)
			((float *)f.a.L.at)[p.head * (size_t)n + row] =
				(float)(w.largest[low] + log((double)total * P_UNIT));
	}
	#pragma unroll
	for (int i = 0; i < D / 2; i++)
		o[i] *= inverse[i / 2 % 2];
	write_accumulators<D>(rows_of_head<float>(f.a.o, p.head, f.a.H, n), first,
		o, f.wide);
}

// visit every second tile of keys
/* a warpgroup's part: 64 queries and every second tile of keys; then O */
template <int D>
__device__ inline void forward_group(const SplitForward &f, const BlockTile &p,
	const KeyRing<D, 1> &ring, int count, int group)
{
	using R = KeyRing<D, 1>;
	const float scale = (float)f.a.scale * *f.q.unit(p.head, p.tile);
	float s[32], o[D / 2], t[D / 2], rescale[2];
	unsigned high[16], low[16];
	SplitRowStats w = { { -FLT_MAX, -FLT_MAX }, { 0, 0 } };
	#pragma unroll
	for (int i = 0; i < D / 2; i++)
		o[i] = 0;
	barrier_wait(ring.fixed_full, 0);
	for (int j = group; j < count; j += GROUPS) {
		// compute P of pair j
		const int stage = R::stage(j);
		const float k_unit = *f.k.unit(p.head, j),
			v_unit = *f.v.unit(p.head, j);
		ring.wait_full(ring.k_full, ring.k_empty, j);
		start_matmul_nt<D>(s, ring.fixed(0), ring.k(stage));
		wgmma_wait<0>();
		pin(s);
		barrier_arrive(ring.k_empty + stage);
		if (needs_mask(p.tile, j, (int)f.a.seqlen_k, f.a.causal))
			apply_mask(s, p.tile * ROWS + row_of_thread(), j * ROWS,
				(int)f.a.seqlen_k, f.a.causal);
		online_softmax(s, w, rescale, scale_of(scale, k_unit));
		// add P V to O
		split_accumulators(high, low, s);
		ring.wait_full(ring.v_full, ring.v_empty, j);
		start_matmul_nn<D>(t, high, low, ring.v(stage));
		wait_matmul(t, high, low);
		barrier_arrive(ring.v_empty + stage);
		#pragma unroll
		for (int i = 0; i < D / 2; i++)
			o[i] = fmaf(t[i], v_unit, o[i] * rescale[i / 2 % 2]);
	}
	join_row_stats<D>(o, w, ring.k(0), group);
	if (group == 0)
		finish_queries<D>(o, w, f, p);
}

// assign the roles of the forward pass in split fp16
/* O = softmax(scale Q K^T) V and L of 64 queries, keys in tiles of 64
 * FLOPs: 12 D of fp16 for each pair of query and key; bytes: Q, O, L once; K, V
 * from the L2 cache for each 64 queries
 * grid: B H tiles of queries */
template <int D>
__global__ __launch_bounds__(THREADS, 1) void split_fp16_forward(
	const __grid_constant__ SplitForward f)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ char memory[];
	const KeyRing<D, 1> ring(memory);
	const BlockTile p = block_tile_of(f.q.count, f.a.causal);
	const int count = tiles_seen(f.k, p.tile, f.a.causal);
	const auto own = [&] {
		copy_tile<D>(ring.fixed(0), f.q, p.head, p.tile, ring.fixed_full);
	};
	ring.run(f.k, f.v, p.head, count, own, [&](int group) {
		forward_group<D>(f, p, ring, count, group);
	});
#endif
}
#endif
