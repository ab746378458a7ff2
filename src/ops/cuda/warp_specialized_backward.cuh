/* warp_specialized_backward.cuh: attention backward on Hopper: what the roles
 * in a block share, the thread that brings tiles, and those that add to dQ
 * P = exp(scale Q K^T - L), delta = rowsum(dO * O)
 * dV = P^T dO, dS = P * (dO V^T - delta), dK = scale dS^T Q, dQ = scale dS K */
#ifndef OPS_CUDA_WARP_SPECIALIZED_BACKWARD_CUH
#define OPS_CUDA_WARP_SPECIALIZED_BACKWARD_CUH

#include "ops/attention_plan.h"
#include "ops/cuda/common.cuh"
#include "ops/cuda/hopper.cuh"

// declare what the kernels pass to each other
/* semaphores come in blocks of BLOCK queries */
enum { BLOCK = 64 };

/* arrays in scratch memory
 * dq_accum: (B H, rows / M, parts, columns / 8, 128 threads, 4): of a part, 64 x
 * columns of dQ or, WIDE, of dQ^T, thread t has, for each 8 columns, two of row
 * 16 (t / 32) + t % 32 / 4 and two of the row 8 below
 * L, delta: (B H, rows), in 16 queries in order of row_stats_position: L log2(e)
 * and delta or, WIDE, -L / scale and -delta
 * dq_semaphore: (B H, rows / 64): tiles of keys that have added; with atomic
 * accumulation -1 while the first part is being written, and then 1
 * tile_counter: tiles of keys given out */
struct BackwardScratch {
	float *dq_accum, *L, *delta;
	int *dq_semaphore, *tile_counter;
	int seqlen_q, rows;
};

/* the position of query c of 16, by which a thread's four queries are
 * neighbours */
__device__ inline int row_stats_position(int c)
{
	return c % 8 / 2 * 4 + c / 8 * 2 + c % 2;
}

/* RoPE's tables, (positions, D / 2); NULL: not rotated */
struct Angles {
	const float *cosine, *sine;
};

/* rotates a pair back by the angle at `at` */
__device__ inline void rope_backward(float &even, float &odd,
	const Angles &angles, size_t at)
{
	if (angles.cosine == NULL)
		return;
	const float c = angles.cosine[at], s = angles.sine[at], x = even, y = odd;
	even = c * x + s * y;
	odd = c * y - s * x;
}

/* arguments of the second and the third kernel */
struct BackwardArguments {
	CUtensorMap q, k, v, d_o, dk, dv;
	BackwardScratch w;
	Angles angles;
	int H, seqlen_k, tiles;         /* tiles: of keys in a head */
	int group;                      /* heads that share one of K and V */
	int heads, together;    /* heads: B H; together: heads of a section */
	bool causal, deterministic;     /* else dQ's parts are added by atomics */
	float scale;
};

// choose tiles for the backward pass
/* M queries and N keys in tiles of elements T[D]; rows of queries are padded to a
 * multiple of PADDED */
template <class T_, int D_, int M_> struct BackwardConfig {
	using T = T_;
	using W = Swizzle<D_>;
	static constexpr int D = D_, M = M_, CONSUMERS = 2, N = 64 * CONSUMERS,
		STAGES = 2, PADDED = M == 80 ? 320 : 128;
	/* WIDE: each consumer computes 64 of D of dQ^T; else dQ of 64 queries or, if
	 * there are no more, a helper does. PART: accumulators of a thread */
	static constexpr bool WIDE = D == 128, HELPER = !WIDE && M == 64;
	static constexpr int PARTS = HELPER ? 1 : CONSUMERS,
		PART = (WIDE ? M : D) / 2;
	/* columns of dS that lie in a block of shared memory */
	using DsBlock = Swizzle<WIDE ? 16 : 64>;
	/* are P and dS made by halves of a tile, to save registers? */
	static constexpr bool HALVES = D == 64;
	/* queries that a block of the last kernel rounds */
	static constexpr int QUERIES = WIDE ? M : BLOCK;
	// assign the registers
	static constexpr int GROUPS = 1 + HELPER + CONSUMERS,
		THREADS = GROUPS * WARPGROUP;
	/* registers of a thread: at the start; of the producer, the helper, the
	 * consumers, in all no more than there are at the start */
	static constexpr int START = 65536 / THREADS / 8 * 8,
		LOW = 24, MIDDLE = PART + 32,
		HIGH = (START * GROUPS - LOW - HELPER * MIDDLE) / CONSUMERS / 8 * 8;
	// lay out shared memory
	/* bytes of tiles: K; Q; dS; a part of dQ */
	static constexpr int K_NBYTES = N * W::ROW, Q_NBYTES = M * W::ROW,
		DS_NBYTES = M * N * 2, DQ_NBYTES = WARPGROUP * PART * 4;
	/* 256: barriers; 1024: the start is rounded up */
	static constexpr int MOST = 232448, OTHER = 2 * K_NBYTES
		+ STAGES * (2 * Q_NBYTES + 8 * M) + PARTS * DQ_NBYTES + 256 + 1024;
	/* tiles of dS: one is written while others wait for dQ's matmul. WIDE: two, by
	 * turns: who passes a visit's barrier knows that all have read the one of the
	 * visit before, and the next visit writes it */
	static constexpr int SLOTS = !WIDE && OTHER + 3 * DS_NBYTES <= MOST ? 3 : 2;
	/* where they start */
	static constexpr int K = 0, V = K + K_NBYTES, Q = V + K_NBYTES,
		DO = Q + STAGES * Q_NBYTES, DS = DO + STAGES * Q_NBYTES,
		DQ = DS + SLOTS * DS_NBYTES, L = DQ + PARTS * DQ_NBYTES,
		DELTA = L + STAGES * M * 4, BARRIERS = DELTA + STAGES * M * 4,
		NBYTES = BARRIERS + 256 + 1024;
	static_assert(NBYTES <= MOST, "a block's shared memory");
	static_assert(PADDED % M == 0 && PADDED % BLOCK == 0,
		"padded queries fill their tiles");
};

// lay out the barriers
/* a phase of "full" ends when there is something to read, of "empty" when it has
 * been read; tile_index: the block's tile of keys */
template <class S> struct Barriers {
	Barrier keys_full, q_full[S::STAGES], q_empty[S::STAGES],
		o_full[S::STAGES], o_empty[S::STAGES],
		ds_full[S::SLOTS], ds_empty[S::SLOTS];  /* not WIDE */
	/* dq_full: for tiles of even and of odd numbers; dq_empty: for both */
	Barrier dq_full[2][S::PARTS], dq_empty[S::PARTS];
	int tile_index;
};

/* called by one thread. All threads arrive at a barrier if they read or write the
 * data themselves; one lane of each warp does, if only matmuls read them */
template <class S>
__device__ inline void start_barriers(Barriers<S> *bars)
{
	barrier_init(&bars->keys_full, 1);
	for (int i = 0; i < S::STAGES; i++) {
		barrier_init(&bars->q_full[i], 1);
		barrier_init(&bars->o_full[i], 1);
		barrier_init(&bars->q_empty[i], WARPGROUP * S::CONSUMERS);
		barrier_init(&bars->o_empty[i], WARPGROUP * S::CONSUMERS);
	}
	for (int i = 0; i < S::SLOTS; i++) {
		barrier_init(&bars->ds_full[i], WARPGROUP * S::CONSUMERS);
		barrier_init(&bars->ds_empty[i], S::HELPER ? 4 : 4 * S::CONSUMERS);
	}
	for (int i = 0; i < S::PARTS; i++) {
		barrier_init(&bars->dq_full[0][i], WARPGROUP);
		barrier_init(&bars->dq_full[1][i], WARPGROUP);
		barrier_init(&bars->dq_empty[i], 1);
	}
	fence_barrier_init();
}

// find which queries a block visits
/* a block's tile of keys, and the tiles of queries that it visits */
struct KeyTile {
	int bh, tile, key;              /* head, tile, first key of the tile */
	/* first tile of queries, how many, where to begin */
	int first, count, start;

	__device__ int visit(int i) const
	{
		const int j = i + start;
		return first + (j < count ? j : j - count);
	}
};

template <class S>
__device__ inline KeyTile key_tile_of(const BackwardArguments &a, int tile_index)
{
	const HeadTile at = head_tile(tile_index, a.heads, a.tiles, a.together);
	KeyTile p;
	p.bh = at.head;
	p.tile = a.deterministic && a.causal ? a.tiles - 1 - at.tile : at.tile;
	p.key = p.tile * S::N;
	const int last = (a.w.seqlen_q + S::M - 1) / S::M;
	p.first = a.causal ? p.key / S::M : 0;
	p.count = max(0, last - p.first);
	p.start = a.causal || a.deterministic ? 0
		: (int)((long long)p.tile * p.count / a.tiles);
	return p;
}

// load keys, then queries
/* starts the copy of `rows` rows of a head from `row` on */
template <class S>
__device__ inline void load_rows(unsigned to, const CUtensorMap *map,
	Barrier *full, int rows, int row, int h, int b)
{
	#pragma unroll
	for (int i = 0; i < S::W::BLOCKS; i++)
		tma_load(to + i * rows * S::W::WIDTH, map, full, EVICT_LAST,
			i * S::W::WIDTH / 2, row, h, b);
}

/* the producer: one thread */
template <class S>
__device__ inline void produce(const BackwardArguments &a, const KeyTile &p,
	unsigned shared, Barriers<S> *bars)
{
	const int h = p.bh % a.H, b = p.bh / a.H;
	const size_t before = (size_t)p.bh * a.w.rows;
	barrier_expect_tx(&bars->keys_full, 2 * S::K_NBYTES);
	load_rows<S>(shared + S::K, &a.k, &bars->keys_full, S::N, p.key,
		h / a.group, b);
	load_rows<S>(shared + S::V, &a.v, &bars->keys_full, S::N, p.key,
		h / a.group, b);
	RingPosition<S::STAGES> at;
	for (int i = 0; i < p.count; i++, at.step()) {
		const int row = p.visit(i) * S::M;
		/* the first round finds stages that nobody has used */
		barrier_wait(&bars->q_empty[at.at], at.parity ^ 1);
		// start the copies of Q and L
		Barrier *full = &bars->q_full[at.at];
		barrier_expect_tx(full, S::Q_NBYTES + S::M * 4);
		load_rows<S>(shared + S::Q + at.at * S::Q_NBYTES, &a.q, full, S::M,
			row, h, b);
		bulk_load(shared + S::L + at.at * S::M * 4, a.w.L + before + row,
			S::M * 4, full);
		barrier_wait(&bars->o_empty[at.at], at.parity ^ 1);
		// start the copies of dO and delta
		full = &bars->o_full[at.at];
		barrier_expect_tx(full, S::Q_NBYTES + S::M * 4);
		load_rows<S>(shared + S::DO + at.at * S::Q_NBYTES, &a.d_o, full, S::M,
			row, h, b);
		bulk_load(shared + S::DELTA + at.at * S::M * 4,
			a.w.delta + before + row, S::M * 4, full);
	}
}

// add to dQ in order, by semaphores
/* the semaphore of query tile j of head bh */
template <class S>
__device__ inline int *semaphore_at(const BackwardArguments &a, int bh, int j)
{
	return a.w.dq_semaphore + ((size_t)bh * a.w.rows + (size_t)j * S::M)
		/ BLOCK;
}

__device__ inline int semaphore_value(const int *semaphore)
{
	int now;
	asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
		: "=r"(now) : "l"(semaphore) : "memory");
	return now;
}

__device__ inline void semaphore_wait(const int *semaphore, int value)
{
	while (semaphore_value(semaphore) != value)
		;
}

__device__ inline void semaphore_release(int *semaphore, int value)
{
	/* makes what was added visible before the semaphore */
	asm volatile("fence.acq_rel.gpu;\n\tst.relaxed.gpu.global.s32 [%0], %1;"
		:: "l"(semaphore), "r"(value + 1) : "memory");
}

// add parts of dQ to the accumulators
/* the accumulators of part `part` of query tile j */
template <class S>
__device__ inline float *dq_accum_at(const BackwardArguments &a,
	const KeyTile &p, int j,
	int part)
{
	return a.w.dq_accum + ((size_t)p.bh * a.w.rows + (size_t)j * S::M) * S::D
		+ part * (WARPGROUP * S::PART);
}

// add to dQ in any order, the first part stored
/* waits for this part, and claims the first turn at its tile. true: it is the
 * first part; false: the first part has been written */
__device__ inline bool claim(int *semaphore, Barrier *full, int parity)
{
	const bool written = semaphore_value(semaphore) == 1;
	barrier_wait(full, parity);
	if (written)
		return false;
	if (atomicCAS(semaphore, 0, -1) == 0)
		return true;
	semaphore_wait(semaphore, 1);
	return false;
}

// add parts of dQ to the accumulators
/* adds parts of dQ; called by one thread for the visits of even numbers, and by
 * one for those of odd numbers */
template <class S>
__device__ inline void add_dq(const BackwardArguments &a, const KeyTile &p,
	unsigned shared, Barriers<S> *bars, int odd)
{
	for (int i = odd; i < p.count; i += 2) {
		const int j = p.visit(i);
		int *semaphore = semaphore_at<S>(a, p.bh, j), before;
		if (a.deterministic) {
			before = key_tiles_before(p.tile, a.tiles, j, S::M, S::N, a.causal);
			semaphore_wait(semaphore, before);
		} else
			before = !claim(semaphore, &bars->dq_full[odd][0], i >> 1 & 1);
		fence_proxy_async_global();
		// add each part as soon as it is there
		#pragma unroll
		for (int part = 0; part < S::PARTS; part++) {
			const unsigned from = shared + S::DQ + part * S::DQ_NBYTES;
			float *to = dq_accum_at<S>(a, p, j, part);
			barrier_wait(&bars->dq_full[odd][part], i >> 1 & 1);
			if (before == 0)
				bulk_store(to, from, S::DQ_NBYTES);
			else
				bulk_reduce_add(to, from, S::DQ_NBYTES);
			tma_store_commit();
			tma_store_wait_read<0>();
			barrier_arrive(&bars->dq_empty[part]);
		}
		if (a.deterministic || before == 0) {
			tma_store_wait();       /* the sums have been written */
			fence_proxy_async_global();
			semaphore_release(semaphore, before);
		}
	}
	tma_store_wait();
}

// multiply parts of dQ
/* starts the matmul of a part of dQ = dS K, WIDE of dQ^T */
template <class S>
__device__ __forceinline__ void start_part(float (&dq)[S::PART],
	unsigned shared, int slot, int part)
{
	using T = typename S::T;
	const unsigned ds = shared + S::DS + slot * S::DS_NBYTES;
	wgmma_fence();
	if constexpr (S::WIDE)
		matmul_tn<T, 16, S::M, S::N>(dq,
			shared + S::K + part * (S::N * S::W::WIDTH), ds);
	else
		matmul_tn<T, S::D, S::D, S::N>(dq,
			ds + part * (S::N * S::DsBlock::WIDTH), shared + S::K);
	wgmma_commit();
}

/* stores a part of dQ of the i-th visit to shared memory, once the part before
 * has been read */
template <class S>
__device__ __forceinline__ void store_part(const float (&dq)[S::PART],
	unsigned shared, Barriers<S> *bars, int part, int i)
{
	const int t = threadIdx.x % WARPGROUP;
	const unsigned to = shared + S::DQ + part * S::DQ_NBYTES + t * 16;
	barrier_wait(&bars->dq_empty[part], (i & 1) ^ 1);
	#pragma unroll
	for (int c = 0; c < S::PART / 4; c++)
		store_four(to + c * 2048, &dq[4 * c]);
	fence_proxy_async();
	barrier_arrive(&bars->dq_full[i & 1][part]);
}

/* the helper: computes dQ of each tile of queries */
template <class S>
__device__ inline void compute_dq(const KeyTile &p, unsigned shared,
	Barriers<S> *bars)
{
	barrier_wait(&bars->keys_full, 0);
	RingPosition<S::SLOTS> at;
	for (int i = 0; i < p.count; i++, at.step()) {
		barrier_wait(&bars->ds_full[at.at], at.parity);
		#pragma unroll
		for (int part = 0; part < S::PARTS; part++) {
			float dq[S::PART];
			start_part<S>(dq, shared, at.at, part);
			wgmma_wait<0>();
			pin(dq);
			if (part == S::PARTS - 1 && threadIdx.x % 32 == 0)
				barrier_arrive(&bars->ds_empty[at.at]);
			store_part<S>(dq, shared, bars, part, i);
		}
	}
}
#endif
