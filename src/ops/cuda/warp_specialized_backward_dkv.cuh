/* warp_specialized_backward_dkv.cuh: attention backward on Hopper: the steps of
 * what a warpgroup does for its 64 keys */
#ifndef OPS_CUDA_WARP_SPECIALIZED_BACKWARD_DKV_CUH
#define OPS_CUDA_WARP_SPECIALIZED_BACKWARD_DKV_CUH

#include "ops/cuda/warp_specialized_backward.cuh"

// mask queries before the key, and read their L and delta
/* masks queries before the key, and keys after the last; key: a thread's first,
 * the other is 8 further; query: the first of the tile */
template <int M>
__device__ inline void apply_mask(float (&s)[M / 2], int key, int seqlen_k,
	int query, bool causal)
{
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const int row = key + 8 * low,
			seen = row >= seqlen_k ? M : causal ? row - query : 0,
			limit = seen - threadIdx.x % 4 * 2;
		#pragma unroll
		for (int c = 0; c < M; c += 8)
			#pragma unroll
			for (int i = 0; i < 2; i++)
				if (c + i < limit)
					s[c / 2 + 2 * low + i] = -INFINITY;
	}
}

/* calls f(element, x) for a thread's eight elements of block `block` of 16
 * queries; x: the number of the element's query in row_stats, which has M in the
 * order of row_stats_position */
template <class Each>
__device__ __forceinline__ void with_row_stats(unsigned row_stats, int block,
	Each f)
{
	float x[4];
	load_four(x, row_stats + block * 64 + threadIdx.x % 4 * 16);
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		f(8 * block + 2 * low, x[0]);
		f(8 * block + 2 * low + 1, x[1]);
		f(8 * block + 4 + 2 * low, x[2]);
		f(8 * block + 4 + 2 * low + 1, x[3]);
	}
}

// convert scores and gradients to operands
/* rounds block `block` of 16 columns to operand A of a matmul */
template <class T, int N>
__device__ __forceinline__ void to_operand(unsigned (&to)[N / 2],
	const float (&from)[N], int block)
{
	#pragma unroll
	for (int i = 4 * block; i < 4 * block + 4; i++)
		to[i] = pack<T>(from[2 * i], from[2 * i + 1]);
}

/* stores dS^T (64 keys x M) to shared memory, where queries are contiguous;
 * first: the warpgroup's first key in the tile */
template <class S>
__device__ inline void store_ds(const unsigned (&ds)[S::M / 4], unsigned to,
	int first)
{
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4,
		row = first + warp * 16 + lane / 8 % 2 * 8 + lane % 8;
	using W = typename S::DsBlock;
	#pragma unroll
	for (int i = 0; i < S::M / 16; i++)
		stmatrix(to + i * 32 / W::WIDTH * S::N * W::WIDTH
			+ W::at(row, i * 32 % W::WIDTH + lane / 16 * 16),
			ds[4 * i], ds[4 * i + 1], ds[4 * i + 2], ds[4 * i + 3]);
}

// declare what a consumer holds and reads
/* a thread's registers: dK and dV, accumulated; S^T, then P^T; dP^T, then dS^T */
template <class S> struct BackwardRegisters {
	float dk[S::D / 2], dv[S::D / 2], s[S::M / 2], dp[S::M / 2];
};

/* a consumer's positions in shared memory and in the rings */
template <class S> struct ConsumerState {
	const BackwardArguments &a;
	const KeyTile &p;
	Barriers<S> *bars;
	unsigned shared;
	int consumer;
	RingPosition<S::STAGES> at;             /* stage of Q and dO */
	/* slots of dS: to write; not WIDE: to read for dQ */
	RingPosition<S::SLOTS> ds, dq;

	__device__ unsigned rows(int tile) const
	{
		return shared + tile + consumer * 64 * S::W::WIDTH;
	}
	__device__ unsigned stage(int start, int nbytes, int i) const
	{
		return shared + start + i * nbytes;
	}
};

// make P and dP of a tile
/* waits for the tile of queries and its dO */
template <class S>
__device__ __forceinline__ void await_queries(const ConsumerState<S> &r)
{
	barrier_wait(&r.bars->q_full[r.at.at], r.at.parity);
	barrier_wait(&r.bars->o_full[r.at.at], r.at.parity);
}

/* S and dP begin with -L / scale and -delta of their queries */
template <class S>
__device__ __forceinline__ void begin_scores(BackwardRegisters<S> &h,
	const ConsumerState<S> &r)
{
	#pragma unroll
	for (int c = 0; c < S::M / 16; c++) {
		with_row_stats(r.stage(S::L, S::M * 4, r.at.at), c,
			[&](int e, float x) { h.s[e] = x; });
		with_row_stats(r.stage(S::DELTA, S::M * 4, r.at.at), c,
			[&](int e, float x) { h.dp[e] = x; });
	}
	pin(h.s);
	pin(h.dp);
}

/* starts S^T, and BEGIN: in what h.s holds */
template <class S, bool BEGIN = false>
__device__ __forceinline__ void multiply_s(BackwardRegisters<S> &h,
	const ConsumerState<S> &r)
{
	wgmma_fence();
	matmul_nt<typename S::T, S::D, S::M, S::N, BEGIN>(h.s, r.rows(S::K),
		r.stage(S::Q, S::Q_NBYTES, r.at.at));
	wgmma_commit();
}

/* starts dP^T likewise */
template <class S, bool BEGIN = false>
__device__ __forceinline__ void multiply_dp(BackwardRegisters<S> &h,
	const ConsumerState<S> &r)
{
	wgmma_fence();
	matmul_nt<typename S::T, S::D, S::M, S::N, BEGIN>(h.dp, r.rows(S::V),
		r.stage(S::DO, S::Q_NBYTES, r.at.at));
	wgmma_commit();
}

/* starts S^T - L / scale and dP^T - delta, in two groups */
template <class S>
__device__ __forceinline__ void start_scores(BackwardRegisters<S> &h,
	const ConsumerState<S> &r)
{
	multiply_s<S, true>(h, r);
	multiply_dp<S, true>(h, r);
}

/* waits for Q, and starts S^T = K Q^T */
template <class S>
__device__ __forceinline__ void start_s(BackwardRegisters<S> &h,
	const ConsumerState<S> &r)
{
	barrier_wait(&r.bars->q_full[r.at.at], r.at.parity);
	multiply_s<S>(h, r);
}

/* masks S^T of the i-th visit, where the mask or the last key asks for it */
template <class S>
__device__ __forceinline__ void mask_scores(BackwardRegisters<S> &h,
	const ConsumerState<S> &r, int i)
{
	const int query = r.p.visit(i) * S::M, key = r.p.key + r.consumer * 64;
	if (key + 64 > r.a.seqlen_k || (r.a.causal && query < key + 63))
		apply_mask<S::M>(h.s, key + threadIdx.x / 32 % 4 * 16
			+ threadIdx.x % 32 / 4, r.a.seqlen_k, query, r.a.causal);
}

/* computes h.s = P^T of the i-th visit, h.dp = dP^T, after start_s */
template <class S>
__device__ __forceinline__ void recompute_p(BackwardRegisters<S> &h,
	const ConsumerState<S> &r, int i)
{
	barrier_wait(&r.bars->o_full[r.at.at], r.at.parity);
	multiply_dp<S>(h, r);
	wgmma_wait<1>();                        /* S is there */
	pin(h.s);
	mask_scores<S>(h, r, i);
	const float base = r.a.scale * LOG2_E;
	#pragma unroll
	for (int c = 0; c < S::M / 16; c++)
		with_row_stats(r.stage(S::L, S::M * 4, r.at.at), c, [&](int e, float L) {
			h.s[e] = exp2_approx(fmaf(h.s[e], base, -L));
		});
	wgmma_wait<0>();                        /* dP is there */
	pin(h.dp);
}

// make dS of a tile, and start the gradients
/* computes h.dp = dS = P (dP - delta) of blocks FIRST up to LAST of 16 queries */
template <class S, int FIRST, int LAST>
__device__ __forceinline__ void compute_ds(BackwardRegisters<S> &h,
	const ConsumerState<S> &r,
	unsigned (&ds_operand)[S::M / 4])
{
	#pragma unroll
	for (int c = FIRST; c < LAST; c++) {
		if constexpr (!S::WIDE)
			with_row_stats(r.stage(S::DELTA, S::M * 4, r.at.at), c,
				[&](int e, float delta) { h.dp[e] -= delta; });
		#pragma unroll
		for (int e = 8 * c; e < 8 * c + 8; e++)
			h.dp[e] *= h.s[e];
		to_operand<typename S::T>(ds_operand, h.dp, c);
	}
}

/* starts dV += P^T dO of these blocks, and leaves the group open */
template <class S, int FIRST, int LAST>
__device__ __forceinline__ void add_values(BackwardRegisters<S> &h,
	const ConsumerState<S> &r,
	unsigned (&p_operand)[S::M / 4])
{
	#pragma unroll
	for (int c = FIRST; c < LAST; c++)
		to_operand<typename S::T>(p_operand, h.s, c);
	wgmma_fence();
	matmul_add<typename S::T, S::D, S::M, FIRST, LAST>(h.dv, p_operand,
		r.stage(S::DO, S::Q_NBYTES, r.at.at));
}

/* WIDE: stores dS for dQ, and waits for the other consumer's half */
template <class S>
__device__ __forceinline__ void share_ds(const ConsumerState<S> &r,
	const unsigned (&ds_operand)[S::M / 4])
{
	store_ds<S>(ds_operand, r.stage(S::DS, S::DS_NBYTES, r.ds.at),
		r.consumer * 64);
	fence_proxy_async();
	named_barrier_sync(1, S::CONSUMERS * WARPGROUP);
}

/* stores dS for dQ */
template <class S>
__device__ __forceinline__ void hand_over_ds(ConsumerState<S> &r,
	const unsigned (&ds_operand)[S::M / 4])
{
	/* what was here has been read */
	barrier_wait(&r.bars->ds_empty[r.ds.at], r.ds.parity ^ 1);
	store_ds<S>(ds_operand, r.stage(S::DS, S::DS_NBYTES, r.ds.at),
		r.consumer * 64);
	fence_proxy_async();
	barrier_arrive(&r.bars->ds_full[r.ds.at]);
	r.ds.step();
}

/* starts dK += dS^T Q */
template <class S>
__device__ __forceinline__ void start_keys(BackwardRegisters<S> &h,
	const ConsumerState<S> &r, unsigned (&ds_operand)[S::M / 4])
{
	wgmma_fence();
	matmul_add<typename S::T, S::D, S::M>(h.dk, ds_operand,
		r.stage(S::Q, S::Q_NBYTES, r.at.at));
	wgmma_commit();
}

/* starts dV and dK, in two groups, and stores dS for dQ */
template <class S>
__device__ __forceinline__ void start_gradients(BackwardRegisters<S> &h,
	ConsumerState<S> &r,
	unsigned (&p_operand)[S::M / 4], unsigned (&ds_operand)[S::M / 4])
{
	constexpr int ALL = S::M / 16, HALF = ALL / 2;
	if constexpr (S::HALVES) {
		compute_ds<S, 0, HALF>(h, r, ds_operand);
		add_values<S, 0, HALF>(h, r, p_operand);
		compute_ds<S, HALF, ALL>(h, r, ds_operand);
		add_values<S, HALF, ALL>(h, r, p_operand);
		wgmma_commit();
	} else {
		add_values<S, 0, ALL>(h, r, p_operand);
		wgmma_commit();
		compute_ds<S, 0, ALL>(h, r, ds_operand);
	}
	hand_over_ds<S>(r, ds_operand);
	start_keys<S>(h, r, ds_operand);
}

/* makes P of the i-th visit, starts dV, and makes dS, after start_scores */
template <class S>
__device__ __forceinline__ void start_values(BackwardRegisters<S> &h,
	const ConsumerState<S> &r, int i, unsigned (&p_operand)[S::M / 4],
	unsigned (&ds_operand)[S::M / 4])
{
	const float base = r.a.scale * LOG2_E;
	wgmma_wait<1>();                        /* S is there */
	pin(h.s);
	mask_scores<S>(h, r, i);
	#pragma unroll
	for (int e = 0; e < S::M / 2; e++)
		h.s[e] = exp2_capped(h.s[e] * base);
	add_values<S, 0, S::M / 16>(h, r, p_operand);
	wgmma_commit();
	wgmma_wait<1>();                        /* dP is there */
	pin(h.dp);
	compute_ds<S, 0, S::M / 16>(h, r, ds_operand);
}
#endif
