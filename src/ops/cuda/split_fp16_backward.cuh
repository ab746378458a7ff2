/* split_fp16_backward.cuh: attention in split fp16, backward: delta, dQ; dK and
 * dV */
#ifndef OPS_CUDA_SPLIT_FP16_BACKWARD_CUH
#define OPS_CUDA_SPLIT_FP16_BACKWARD_CUH

#include "ops/cuda/split_fp16_tiles.cuh"

// compute L and delta of queries
/* arguments of the backward kernels; L, deltas: (heads, tiles of queries, 64).
 * After the last query L is infinite, and so P is 0 */
struct SplitBackward {
	Attention a;
	AttentionGradient g;
	SplitTiles q, k, v, d_o;
	float *L, *deltas;
	bool wide, wide_o;              /* may gradients be written in pairs, O and
	                                 * dO read by fours? */
};

enum { FINDERS = 256, TEAM = 8 };

/* delta = scale P_UNIT rowsum(dO O), and L, padded
 * bytes: O, dO, L once
 * grid: B H padded queries / 32, block: eight threads for each */
__global__ __launch_bounds__(FINDERS) void split_fp16_delta(
	const __grid_constant__ SplitBackward b)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	constexpr int EACH = FINDERS / TEAM;    /* rows of a block */
	const int n = (int)b.a.seqlen_q, blocks = b.q.count * ROWS / EACH,
		head = blockIdx.x / blocks,
		row = blockIdx.x % blocks * EACH + threadIdx.x / TEAM;
	const size_t at = (size_t)head * blocks * EACH + row;
	float sum = 0, L = INFINITY;
	if (row < n) {
		// sum dO O over the thread's part of a row, and read L
		const auto o = rows_of_head<const float>(b.a.o, head, b.a.H, n),
			d_o = rows_of_head<const float>(b.g.d_o, head, b.a.H, n);
		for (int c = threadIdx.x % TEAM * 8; c < (int)b.a.D; c += TEAM * 8) {
			float x[8], y[8];
			load_eight(x, o.at + row * o.step + c, b.wide_o);
			load_eight(y, d_o.at + row * d_o.step + c, b.wide_o);
			#pragma unroll
			for (int k = 0; k < 8; k++)
				sum += x[k] * y[k];
		}
		L = finite_L(((const float *)b.a.L.at)[head * (size_t)n + row]);
	}
	#pragma unroll
	for (int lane = TEAM / 2; lane > 0; lane /= 2)
		sum += __shfl_xor_sync(0xffffffff, sum, lane);
	if (threadIdx.x % TEAM == 0) {
		b.L[at] = L;
		b.deltas[at] = sum * (float)b.a.scale * P_UNIT;
	}
#endif
}

// find the gradient of fp32 queries
/* splits dS of a thread's two rows into operand A; units: one for each row */
__device__ __forceinline__ void split_ds(unsigned (&high)[16],
	unsigned (&low)[16], float (&units)[2], float (&ds)[32])
{
	#pragma unroll
	for (int lower = 0; lower < 2; lower++) {
		float most[2] = { 0, 0 };
		#pragma unroll
		for (int i = 0; i < 16; i++)
			most[i % 2] = fmaxf(most[i % 2],
				fabsf(ds[i / 2 * 4 + 2 * lower + i % 2]));
		const SplitUnit unit = unit_for(quad_max(fmaxf(most[0], most[1])));
		units[lower] = unit.one;
		#pragma unroll
		for (int i = 0; i < 16; i++)
			ds[i / 2 * 4 + 2 * lower + i % 2] *= unit.inverse;
	}
	split_accumulators(high, low, ds);
}

/* acc += t, which is in the product of its row's unit and `unit` */
template <int R>
__device__ __forceinline__ void add_scaled(float (&acc)[R], const float (&t)[R],
	const float (&units)[2], float unit)
{
	const float both[2] = { units[0] * unit, units[1] * unit };
	#pragma unroll
	for (int i = 0; i < R; i++)
		acc[i] = fmaf(t[i], both[i / 2 % 2], acc[i]);
}

/* a warpgroup's part: 64 queries and every second tile of keys; then dQ */
template <int D>
__device__ inline void dq_group(const SplitBackward &b, const BlockTile &p,
	const KeyRing<D, 2> &ring, int count, int group)
{
	using R = KeyRing<D, 2>;
	// read the units, L and delta of these queries
	const float scale = (float)b.a.scale * *b.q.unit(p.head, p.tile),
		ds_scale = (float)b.a.scale * P_UNIT * *b.d_o.unit(p.head, p.tile);
	const int first = p.tile * ROWS + row_of_thread(), n = (int)b.a.seqlen_q;
	const size_t at = (size_t)p.head * b.q.count * ROWS + first;
	const float L[2] = { b.L[at], b.L[at + 8] },
		delta[2] = { b.deltas[at], b.deltas[at + 8] };
	float s_or_p[32], ds[32], dq[D / 2], t[D / 2], units[2];
	unsigned high[16], low[16];
	#pragma unroll
	for (int i = 0; i < D / 2; i++)
		dq[i] = 0;
	barrier_wait(ring.fixed_full, 0);
	for (int j = group; j < count; j += GROUPS) {
		// compute dS of pair j
		const int stage = R::stage(j);
		const float k_unit = *b.k.unit(p.head, j),
			to_score = scale_of(scale, k_unit),
			dp_scale = ds_scale * *b.v.unit(p.head, j);
		ring.wait_full(ring.k_full, ring.k_empty, j);
		start_matmul_nt<D>(s_or_p, ring.fixed(0), ring.k(stage));
		ring.wait_full(ring.v_full, ring.v_empty, j);
		start_matmul_nt<D>(ds, ring.fixed(1), ring.v(stage));
		wgmma_wait<1>();                /* S is there */
		pin(s_or_p);
		if (needs_mask(p.tile, j, (int)b.a.seqlen_k, b.a.causal))
			apply_mask(s_or_p, first, j * ROWS, (int)b.a.seqlen_k, b.a.causal);
		#pragma unroll
		for (int i = 0; i < 32; i++)
			s_or_p[i] = exp_score(s_or_p[i], to_score, L[i / 2 % 2]);
		pin(s_or_p);
		wgmma_wait<0>();                /* dP is there */
		pin(ds);
		barrier_arrive(ring.v_empty + stage);
		#pragma unroll
		for (int i = 0; i < 32; i++)
			ds[i] = s_or_p[i] * fmaf(ds[i], dp_scale, -delta[i / 2 % 2]);
		split_ds(high, low, units, ds);
		start_matmul_nn<D>(t, high, low, ring.k(stage));
		wait_matmul(t, high, low);
		barrier_arrive(ring.k_empty + stage);
		add_scaled(dq, t, units, k_unit);
	}
	// join both parts of dQ, and write it
	named_barrier_sync(1, GROUPS * WARPGROUP); /* all tiles have been read */
	if (group == GROUPS - 1)
		store_accumulators(ring.k(0), dq);
	named_barrier_sync(1, GROUPS * WARPGROUP); /* the sums are there */
	if (group > 0)
		return;
	with_accumulators<D / 2>(ring.k(0), [&](int i, float x) { dq[i] += x; });
	rope_backward<D>(dq, b.g, first, n);
	write_accumulators<D>(rows_of_head<float>(b.g.dq, p.head, b.a.H, n), first, dq,
		b.wide);
}

// find the gradient of fp32 queries
/* dQ = dS K of 64 queries, keys in tiles of 64
 * FLOPs: 18 D of fp16 for each pair of query and key; bytes: Q, dO, dQ once;
 * K, V from the L2 cache for each 64 queries
 * grid: B H tiles of queries */
template <int D>
__global__ __launch_bounds__(THREADS, 1) void split_fp16_dq(
	const __grid_constant__ SplitBackward b)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ char memory[];
	const KeyRing<D, 2> ring(memory);
	const BlockTile p = block_tile_of(b.q.count, b.a.causal);
	const int count = tiles_seen(b.k, p.tile, b.a.causal);
	const auto own = [&] {
		copy_tile<D>(ring.fixed(0), b.q, p.head, p.tile, ring.fixed_full);
		copy_tile<D>(ring.fixed(1), b.d_o, p.head, p.tile, ring.fixed_full);
	};
	ring.run(b.k, b.v, p.head, count, own, [&](int group) {
		dq_group<D>(b, p, ring, count, group);
	});
#endif
}

// load tiles of Q and dO into a ring
/* shared memory of blocks that own a tile of keys while pairs of tiles of
 * queries pass by: Q with L, dO with deltas. One warpgroup finds P^T and
 * dV, and stores P^T for the other, which finds dS^T and dK: both read all
 * tiles */
template <int D> struct QueryRing : SharedRing {
	// count the bytes of a ring of queries
	static constexpr int TILE = SplitTile<D>::TILE,
		ROW_STATS = ROWS * sizeof(float),
		SLOTS = 2, SLOT = ROWS * ROWS * sizeof(float),
		PAIR = 2 * (TILE + ROW_STATS);
	static constexpr int ROOM = (MOST_SHARED - ROUND_UP - BARRIER_BYTES
		- 2 * TILE - SLOTS * SLOT) / PAIR;
	static constexpr int STAGES = ROOM > 4 ? 4 : ROOM;
	static constexpr int RING = 2 * TILE, P = RING + STAGES * 2 * TILE,
		LS = P + SLOTS * SLOT, DELTAS = LS + STAGES * ROW_STATS,
		BARRIERS = DELTAS + STAGES * ROW_STATS,
		NBYTES = BARRIERS + BARRIER_BYTES + ROUND_UP;
	static_assert(STAGES >= 2, "copies run beside products");
	static_assert((1 + 4 * STAGES + 2 * SLOTS) * sizeof(Barrier)
		<= BARRIER_BYTES, "fits");

	Barrier *q_full, *o_full, *q_empty, *o_empty, *p_full, *p_empty;

	// find places in the ring of queries
	__device__ explicit QueryRing(char *memory) : SharedRing(memory, BARRIERS)
	{
		q_full = fixed_full + 1;
		o_full = q_full + STAGES;
		q_empty = o_full + STAGES;
		o_empty = q_empty + STAGES;
		p_full = o_empty + STAGES;
		p_empty = p_full + SLOTS;
	}
	__device__ unsigned k() const { return start; }
	__device__ unsigned v() const { return start + TILE; }
	__device__ unsigned q(int stage) const
	{
		return start + RING + stage * 2 * TILE;
	}
	__device__ unsigned d_o(int stage) const { return q(stage) + TILE; }
	__device__ unsigned L(int stage) const
	{
		return start + LS + stage * ROW_STATS;
	}
	__device__ unsigned deltas(int stage) const
	{
		return start + DELTAS + stage * ROW_STATS;
	}
	__device__ unsigned p(int slot) const
	{
		return start + P + slot * SLOT;
	}
	// start the barriers of the ring of queries
	/* called by one thread; __syncthreads() must follow */
	__device__ void start_barriers() const
	{
		barrier_init(fixed_full, 1);
		for (int i = 0; i < STAGES; i++) {
			barrier_init(q_full + i, 1);
			barrier_init(o_full + i, 1);
			barrier_init(q_empty + i, GROUPS * WARPGROUP);
			barrier_init(o_empty + i, GROUPS * WARPGROUP);
		}
		for (int i = 0; i < SLOTS; i++) {
			barrier_init(p_full + i, WARPGROUP);
			barrier_init(p_empty + i, WARPGROUP);
		}
		fence_barrier_init();
	}
	// load pairs of queries and gradients
	/* called by one thread: loads tiles of queries from `first` to the last */
	__device__ void copy_queries(const SplitBackward &b, int head, int first) const
	{
		const size_t before = (size_t)head * b.q.count;
		RingPosition<STAGES> at;
		for (int j = first; j < b.q.count; j++, at.step()) {
			Barrier *full = q_full + at.at;
			/* the first round finds stages that nobody has used */
			barrier_wait(q_empty + at.at, at.parity ^ 1);
			barrier_expect_tx(full, TILE + ROW_STATS);
			bulk_load(L(at.at), b.L + (before + j) * ROWS, ROW_STATS, full);
			copy_tile<D>(q(at.at), b.q, head, j, full);
			full = o_full + at.at;
			barrier_wait(o_empty + at.at, at.parity ^ 1);
			barrier_expect_tx(full, TILE + ROW_STATS);
			bulk_load(deltas(at.at), b.deltas + (before + j) * ROWS, ROW_STATS,
				full);
			copy_tile<D>(d_o(at.at), b.d_o, head, j, full);
		}
	}
};

// find the gradients of fp32 keys and values
/* calls f(element, x) for all of a thread's elements; x: the number of its column
 * in row_stats, 64 in shared memory */
template <class Each>
__device__ __forceinline__ void with_columns(unsigned row_stats, Each f)
{
	#pragma unroll
	for (int c = 0; c < 8; c++) {
		float x[2];
		load_two(x, row_stats + (c * 8 + threadIdx.x % 4 * 2) * 4);
		#pragma unroll
		for (int i = 0; i < 4; i++)
			f(4 * c + i, x[i % 2]);
	}
}

/* masks queries before a key; first: query of the first column */
__device__ __forceinline__ void apply_mask(float (&s)[32], int key, int first)
{
	#pragma unroll
	for (int i = 0; i < 32; i++)
		if (first + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2
				< key + i / 2 % 2 * 8)
			s[i] = -INFINITY;
}

/* the first warpgroup: P^T of 64 keys, also for the other one, and dV */
template <int D>
__device__ inline void dv_group(const SplitBackward &b, const BlockTile &p,
	const QueryRing<D> &ring, int first)
{
	const float scale = (float)b.a.scale * *b.k.unit(p.head, p.tile),
		units[2] = { P_UNIT, P_UNIT };
	const int key = p.tile * ROWS + row_of_thread(), n = (int)b.a.seqlen_k;
	float s[32], dv[D / 2], t[D / 2];
	unsigned high[16], low[16];
	RingPosition<QueryRing<D>::STAGES> at;
	RingPosition<QueryRing<D>::SLOTS> slot;
	#pragma unroll
	for (int i = 0; i < D / 2; i++)
		dv[i] = 0;
	barrier_wait(ring.fixed_full, 0);
	for (int j = first; j < b.q.count; j++, at.step(), slot.step()) {
		// compute P of these keys, and store it
		const float to_score = scale_of(scale, *b.q.unit(p.head, j)),
			o_unit = *b.d_o.unit(p.head, j);
		barrier_wait(ring.q_full + at.at, at.parity);
		start_matmul_nt<D>(s, ring.k(), ring.q(at.at));
		wgmma_wait<0>();
		pin(s);
		if (b.a.causal && j == p.tile)
			apply_mask(s, key, j * ROWS);
		with_columns(ring.L(at.at), [&](int i, float L) {
			s[i] = exp_score(s[i], to_score, L);
		});
		barrier_arrive(ring.q_empty + at.at);
		barrier_wait(ring.p_empty + slot.at, slot.parity ^ 1);
		store_accumulators(ring.p(slot.at), s);
		barrier_arrive(ring.p_full + slot.at);
		// add P^T dO to dV
		split_accumulators(high, low, s);
		barrier_wait(ring.o_full + at.at, at.parity);
		start_matmul_nn<D>(t, high, low, ring.d_o(at.at));
		wait_matmul(t, high, low);
		barrier_arrive(ring.o_empty + at.at);
		add_scaled(dv, t, units, o_unit);
	}
	write_accumulators<D>(rows_of_head<float>(b.g.dv, p.head, b.a.H, n), key,
		dv, b.wide);
}

// find the gradients of fp32 keys and values
/* the second warpgroup: dS^T of 64 keys, from the first one's P^T, and dK */
template <int D>
__device__ inline void dk_group(const SplitBackward &b, const BlockTile &p,
	const QueryRing<D> &ring, int first)
{
	const float ds_scale = (float)b.a.scale * P_UNIT
		* *b.v.unit(p.head, p.tile);
	const int key = p.tile * ROWS + row_of_thread(), n = (int)b.a.seqlen_k;
	float ds[32], dk[D / 2], t[D / 2], units[2];
	unsigned high[16], low[16];
	RingPosition<QueryRing<D>::STAGES> at;
	RingPosition<QueryRing<D>::SLOTS> slot;
	#pragma unroll
	for (int i = 0; i < D / 2; i++)
		dk[i] = 0;
	barrier_wait(ring.fixed_full, 0);
	for (int j = first; j < b.q.count; j++, at.step(), slot.step()) {
		// compute dS of these keys
		const float dp_scale = ds_scale * *b.d_o.unit(p.head, j),
			q_unit = *b.q.unit(p.head, j);
		barrier_wait(ring.o_full + at.at, at.parity);
		start_matmul_nt<D>(ds, ring.v(), ring.d_o(at.at));
		wgmma_wait<0>();
		pin(ds);
		with_columns(ring.deltas(at.at), [&](int i, float delta) {
			ds[i] = fmaf(ds[i], dp_scale, -delta);
		});
		barrier_arrive(ring.o_empty + at.at);
		barrier_wait(ring.p_full + slot.at, slot.parity);
		with_accumulators<32>(ring.p(slot.at), [&](int i, float p_element) {
			ds[i] *= p_element;
		});
		barrier_arrive(ring.p_empty + slot.at);
		// add dS^T Q to dK
		split_ds(high, low, units, ds);
		barrier_wait(ring.q_full + at.at, at.parity);
		start_matmul_nn<D>(t, high, low, ring.q(at.at));
		wait_matmul(t, high, low);
		barrier_arrive(ring.q_empty + at.at);
		add_scaled(dk, t, units, q_unit);
	}
	rope_backward<D>(dk, b.g, key, n);
	write_accumulators<D>(rows_of_head<float>(b.g.dk, p.head, b.a.H, n), key,
		dk, b.wide);
}

// find the gradients of fp32 keys and values
/* dV = P^T dO, dK = dS^T Q of 64 keys, queries in tiles of 64
 * FLOPs: 24 D of fp16 for each pair of query and key; bytes: K, V, dK, dV once;
 * Q, dO, L and delta from the L2 cache for each 64 keys
 * grid: B H tiles of keys */
template <int D>
__global__ __launch_bounds__(THREADS, 1) void split_fp16_dkv(
	const __grid_constant__ SplitBackward b)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ char memory[];
	const QueryRing<D> ring(memory);
	const BlockTile p = block_tile_of(b.k.count, false);
	const int first = b.a.causal ? p.tile : 0, group = group_of_thread();
	if (threadIdx.x == PRODUCER)
		ring.start_barriers();
	__syncthreads();                /* barriers are ready for all */
	// assign the roles of a block of keys
	if (group == 0) {
		setmaxnreg_inc<CONSUMER_REGISTERS>();
		dv_group<D>(b, p, ring, first);
	} else if (group == 1) {
		setmaxnreg_inc<CONSUMER_REGISTERS>();
		dk_group<D>(b, p, ring, first);
	} else {
		setmaxnreg_dec<PRODUCER_REGISTERS>();
		if (threadIdx.x == PRODUCER) {
			barrier_expect_tx(ring.fixed_full, 2 * SplitTile<D>::TILE);
			copy_tile<D>(ring.k(), b.k, p.head, p.tile, ring.fixed_full);
			copy_tile<D>(ring.v(), b.v, p.head, p.tile, ring.fixed_full);
			ring.copy_queries(b, p.head, first);
		}
	}
#endif
}
#endif
