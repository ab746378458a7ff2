/* warp_specialized_backward_visits.cuh: attention backward on Hopper: a
 * warpgroup's visits to tiles of queries, and its results */
#ifndef OPS_CUDA_WARP_SPECIALIZED_BACKWARD_VISITS_CUH
#define OPS_CUDA_WARP_SPECIALIZED_BACKWARD_VISITS_CUH

#include "ops/cuda/warp_specialized_backward_dkv.cuh"

// write the gradients of keys and values
/* scales dK of 64 keys from `key` on, and rotates its pairs back */
template <class S>
__device__ __forceinline__ void finish_keys(float (&dk)[S::D / 2],
	const BackwardArguments &a, int key)
{
	const int lane = threadIdx.x % 32,
		top = key + threadIdx.x / 32 % 4 * 16 + lane / 4;
	#pragma unroll
	for (int i = 0; i < S::D / 2; i += 2) {
		const int row = top + i / 2 % 2 * 8;
		dk[i] *= a.scale;
		dk[i + 1] *= a.scale;
		if (row < a.seqlen_k)
			rope_backward(dk[i], dk[i + 1], a.angles,
				row * (size_t)(S::D / 2) + i / 4 * 4 + lane % 4);
	}
}

/* stores a warpgroup's 64 x D gradients by way of its rows of V's tile */
template <class S>
__device__ inline void write_keys(const float (&x)[S::D / 2],
	const CUtensorMap *map, unsigned tile, int consumer, int key, int h, int b)
{
	using W = typename S::W;
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4,
		row = consumer * 64 + warp * 16 + lane / 8 % 2 * 8 + lane % 8;
	unsigned y[S::D / 4];
	#pragma unroll
	for (int i = 0; i < S::D / 16; i++) {
		to_operand<typename S::T>(y, x, i);
		stmatrix(tile + i * 32 / W::WIDTH * S::N * W::WIDTH
			+ W::at(row, i * 32 % W::WIDTH + lane / 16 * 16),
			y[4 * i], y[4 * i + 1], y[4 * i + 2], y[4 * i + 3]);
	}
	fence_proxy_async();
	named_barrier_sync(2 + consumer, WARPGROUP); /* the warpgroup has written */
	if (threadIdx.x % WARPGROUP == 0) {
		#pragma unroll
		for (int i = 0; i < W::BLOCKS; i++)
			tma_store(map, tile + (i * S::N + consumer * 64) * W::WIDTH,
				i * W::WIDTH / 2, key + consumer * 64, h, b);
		tma_store_commit();
		tma_store_wait_read<0>();
	}
	/* its rows may be written again */
	named_barrier_sync(2 + consumer, WARPGROUP);
}

// loop over the tiles of queries
/* arrives when matmuls have read a stage and this thread its L and delta */
template <class S>
__device__ __forceinline__ void free_stage(const ConsumerState<S> &r, int stage)
{
	barrier_arrive(&r.bars->q_empty[stage]);
	barrier_arrive(&r.bars->o_empty[stage]);
}

/* hands over this consumer's part of dQ of the i-th visit, when it is computed;
 * one lane of each warp gives the slot of dS back: only matmuls have read it */
template <class S>
__device__ __forceinline__ void end_part(const float (&dq)[S::PART],
	ConsumerState<S> &r, int i)
{
	if (threadIdx.x % 32 == 0)
		barrier_arrive(&r.bars->ds_empty[r.dq.at]);
	r.dq.step();
	store_part<S>(dq, r.shared, r.bars, r.consumer, i);
}

/* computes the i-th part of dQ when nothing else is under way */
template <class S>
__device__ __forceinline__ void make_part(ConsumerState<S> &r, int i)
{
	float dq[S::PART];
	barrier_wait(&r.bars->ds_full[r.dq.at], r.dq.parity);
	start_part<S>(dq, r.shared, r.dq.at, r.consumer);
	wgmma_wait<0>();
	pin(dq);
	end_part<S>(dq, r, i);
}

// visit a tile of queries
/* the i-th visit; at its start and end no matmul is under way */
template <class S>
__device__ __forceinline__ void visit_tile(BackwardRegisters<S> &h,
	ConsumerState<S> &r, int i)
{
	unsigned p_operand[S::M / 4], ds_operand[S::M / 4];
	float dq[S::PART];
	start_scores<S>(h, r);
	start_values<S>(h, r, i, p_operand, ds_operand);
	share_ds<S>(r, ds_operand);
	start_part<S>(dq, r.shared, r.ds.at, r.consumer);
	start_keys<S>(h, r, ds_operand);
	wgmma_wait<1>();                        /* all but dK is there */
	pin(p_operand);
	pin(dq);
	r.ds.step();
	store_part<S>(dq, r.shared, r.bars, r.consumer, i);
	// wait for the next queries, then for dK
	const int stage = r.at.at;
	if (i + 1 < r.p.count)
		r.at.step();
	await_queries<S>(r);
	begin_scores<S>(h, r);
	wgmma_wait<0>();                        /* dK is there */
	pin(ds_operand);
	free_stage<S>(r, stage);
}

// take the gradients of a tile, and make the next
/* the gradients of tile i - 1, and P of tile i */
template <class S>
__device__ __forceinline__ void next_tile(BackwardRegisters<S> &h,
	ConsumerState<S> &r, int i)
{
	unsigned p_operand[S::M / 4], ds_operand[S::M / 4];
	float dq[S::PART];
	start_gradients<S>(h, r, p_operand, ds_operand);
	wgmma_wait<1>();                        /* dV is there */
	pin(p_operand);
	const int stage = r.at.at;
	r.at.step();
	// start a part of dQ of tile i - 2, and free the stage of i - 1
	if constexpr (!S::HELPER) {
		if (i > 1)
			barrier_wait(&r.bars->ds_full[r.dq.at], r.dq.parity);
		start_part<S>(dq, r.shared, r.dq.at, r.consumer);
		wgmma_wait<1>();                /* dK is there */
		pin(ds_operand);
		free_stage<S>(r, stage);
	}
	start_s<S>(h, r);
	wgmma_wait<1>();                        /* all but S is there */
	// hand over the part of dQ
	if constexpr (S::HELPER) {
		pin(ds_operand);
		free_stage<S>(r, stage);
	} else {
		pin(dq);
		if (i > 1)
			end_part<S>(dq, r, i - 2);
	}
	recompute_p<S>(h, r, i);
}

// loop over the tiles of queries
/* computes the gradients of the last tile, and the missing parts of dQ */
template <class S>
__device__ __forceinline__ void last_tile(BackwardRegisters<S> &h,
	ConsumerState<S> &r)
{
	unsigned p_operand[S::M / 4], ds_operand[S::M / 4];
	start_gradients<S>(h, r, p_operand, ds_operand);
	wgmma_wait<0>();                        /* dV, dK are there */
	pin(p_operand);
	pin(ds_operand);
	if constexpr (!S::HELPER)
		for (int i = max(0, r.p.count - 2); i < r.p.count; i++)
			make_part<S>(r, i);
}

/* visits the tiles of queries, one at least */
template <class S>
__device__ __forceinline__ void visit_tiles(BackwardRegisters<S> &h,
	ConsumerState<S> &r)
{
	if constexpr (S::WIDE) {
		await_queries<S>(r);
		begin_scores<S>(h, r);
		for (int i = 0; i < r.p.count; i++)
			visit_tile<S>(h, r, i);
	} else {
		start_s<S>(h, r);
		recompute_p<S>(h, r, 0);
		for (int i = 1; i < r.p.count; i++)
			next_tile<S>(h, r, i);
		last_tile<S>(h, r);
	}
}

/* a consumer: computes dK and dV of its 64 keys */
template <class S>
__device__ inline void consume(const BackwardArguments &a, const KeyTile &p,
	unsigned shared, Barriers<S> *bars, int consumer)
{
	BackwardRegisters<S> h;
	ConsumerState<S> r = { a, p, bars, shared, consumer };
	#pragma unroll
	for (int i = 0; i < S::D / 2; i++)
		h.dk[i] = h.dv[i] = 0;
	barrier_wait(&bars->keys_full, 0);
	if (p.count > 0)
		visit_tiles<S>(h, r);
	// write dV and dK
	pin(h.dk);
	pin(h.dv);
	finish_keys<S>(h.dk, a, p.key + consumer * 64);
	named_barrier_sync(2 + consumer, WARPGROUP); /* its rows of V have been read */
	const int head = p.bh % a.H, b = p.bh / a.H;
	write_keys<S>(h.dv, &a.dv, shared + S::V, consumer, p.key, head, b);
	write_keys<S>(h.dk, &a.dk, shared + S::V, consumer, p.key, head, b);
	tma_store_wait();
}
#endif
