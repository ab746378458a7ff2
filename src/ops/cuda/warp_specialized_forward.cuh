/* warp_specialized_forward.cuh: attention's forward pass for Hopper: shapes,
 * the tile scheduler, the producer, and the softmax */
#ifndef OPS_CUDA_WARP_SPECIALIZED_FORWARD_CUH
#define OPS_CUDA_WARP_SPECIALIZED_FORWARD_CUH

#include "ops/attention_plan.h"
#include "ops/cuda/common.cuh"
#include "ops/cuda/hopper.cuh"

// shape the tiles of queries and keys
/* INDEPENDENT: warpgroups with 64 queries each; PINGPONG:they also take turns to
 * start matmuls; SPLIT: they share 64 queries and take alternate tiles of keys */
enum WarpgroupSchedule { INDEPENDENT, PINGPONG, SPLIT };

/* GROUPS consumer warpgroups; tiles of N keys, STAGES of them in the ring; BLOCKS
 * of threads on a multiprocessor */
template <class T_, int D_, int GROUPS_, int N_, int STAGES_,
	WarpgroupSchedule SCHEDULE_, int BLOCKS_ = 1>
struct TileConfig {
	using T = T_;
	using W = Swizzle<D_>;
	static constexpr int D = D_, GROUPS = GROUPS_, N = N_, STAGES = STAGES_,
		BLOCKS = BLOCKS_;
	static constexpr WarpgroupSchedule SCHEDULE = SCHEDULE_;
	/* tiles of 64 queries in a block; tiles of keys from a warpgroup's one to its
	 * next */
	static constexpr int Q_TILES = SCHEDULE == SPLIT ? 1 : GROUPS,
		STRIDE = SCHEDULE == SPLIT ? GROUPS : 1;
	static constexpr int M = 64 * Q_TILES, THREADS = WARPGROUP * (GROUPS + 1);
	static_assert(N % 16 == 0 && N <= 256, "wgmma's shapes");
	static_assert(SCHEDULE == INDEPENDENT || GROUPS > 1,
		"there is one to share with");
	/* the first warpgroup's first tile has a key for each row, if the mask begins
	 * at the first key */
	static_assert(SCHEDULE != SPLIT || N % 64 == 0,
		"the diagonal is in one tile");

	// count the bytes of tiles
	/* a tile of 64 queries, a tile of keys, all tiles of keys and values */
	static constexpr int Q_NBYTES = 64 * W::ROW, K_NBYTES = N * W::ROW,
		RING_NBYTES = 2 * STAGES * K_NBYTES;
	/* the results that a warpgroup stores for the first one: O, maximum and sum of
	 * two rows */
	static constexpr int ACC = D / 2 + 4, ACC_NBYTES = ACC * 4 * WARPGROUP,
		ACC_ALL = (STRIDE - 1) * ACC_NBYTES;
	/* a block may have 232448; a multiprocessor has 233472, of which each block takes
	 * 1024 more than it asks for (each of two gets 512 less than it could have);
	 * 1024: the first tile's address is rounded up; 256: barriers */
	static constexpr int MOST = 232448 / BLOCKS - 1024 * (BLOCKS > 1) - 1024 - 256;
	/* the next tile's queries travel while these are in use, if there is room */
	static constexpr int Q_STAGES =
		RING_NBYTES + ACC_ALL + 2 * Q_TILES * Q_NBYTES <= MOST ? 2 : 1;
	static constexpr int Q_ALL = Q_STAGES * Q_TILES * Q_NBYTES,
		TILES_ALL = Q_ALL + RING_NBYTES + ACC_ALL, NBYTES = 1024 + TILES_ALL + 256;
	static_assert(TILES_ALL <= MOST, "fits in shared memory");
	static_assert(STAGES >= STRIDE, "each warpgroup has a tile");
	static_assert(K_NBYTES % 1024 == 0, "swizzled blocks start at 1024");
	// count the registers of a thread
	/* at launch, and after they were redistributed; a lone consumer starts with
	 * half of a multiprocessor's as well, so that there are some to redistribute */
	static constexpr int SHARERS = GROUPS == 1 && BLOCKS == 1 ? 2 : BLOCKS,
		REGISTERS_AT_LAUNCH = 65536 / (THREADS * SHARERS) / 8 * 8,
		PRODUCER_REGISTERS = GROUPS > 2 || GROUPS * BLOCKS > 2 ? 32 : 40,
		CONSUMER_REGISTERS = (REGISTERS_AT_LAUNCH * (GROUPS + 1)
			- PRODUCER_REGISTERS) / GROUPS / 8 * 8;
	static_assert(CONSUMER_REGISTERS <= 240, "with a few to spare of 255");
};

// lay out the shared memory of a block
/* sizes, and what all roles share */
struct ForwardArguments {
	int seqlen_q, seqlen_k, H, heads; /* heads: B H */
	int group;                      /* heads that share one of K and V */
	int query_tiles, together;    /* heads of a section */
	int tiles;
	float base2;                    /* scale log2(e) */
	bool causal;
	int diagonal;                   /* query i sees keys 0 ... i + diagonal */
	float *L;
	unsigned *tile_counter;         /* NULL: each block has one tile */
};

struct ForwardMaps {
	CUtensorMap q, k, v, o;
};

template <class C> struct ForwardShared {
	/* tiles [Q_STAGES][Q_TILES], [STAGES], [STAGES] */
	unsigned q, k, v;
	/* accumulators [STRIDE - 1], of warpgroups 1 ... */
	unsigned acc;
	Barrier *acc_full, *acc_empty;
	Barrier *q_full, *q_empty, *k_full, *k_empty, *v_full, *v_empty;
	/* [Q_STAGES]: number of the tile; -1: the end */
	int *tile;

	__device__ explicit ForwardShared(char *memory)
	{
		memory += (1024 - smem_address(memory) % 1024) % 1024;
		q = smem_address(memory);
		k = q + C::Q_ALL;
		v = k + C::STAGES * C::K_NBYTES;
		acc = v + C::STAGES * C::K_NBYTES;
		q_full = (Barrier *)(memory + C::TILES_ALL);
		q_empty = q_full + C::Q_STAGES;
		k_full = q_empty + C::Q_STAGES;
		k_empty = k_full + C::STAGES;
		v_full = k_empty + C::STAGES;
		v_empty = v_full + C::STAGES;
		acc_full = v_empty + C::STAGES;
		acc_empty = acc_full + C::STRIDE - 1;
		tile = (int *)(acc_empty + C::STRIDE - 1);
		static_assert((4 * C::STAGES + 2 * C::Q_STAGES + 2 * C::STRIDE) * 8
			+ 4 * C::Q_STAGES <= 256, "barriers fit");
	}
	__device__ unsigned queries(int stage, int group) const
	{
		return q + (stage * C::Q_TILES + group % C::Q_TILES) * C::Q_NBYTES;
	}
};

// schedule tiles of queries
/* a tile of queries: its head, its first query, the tiles of keys that it sees */
struct QueryTile {
	int head, first, key_tiles;
};

template <class C>
__device__ inline QueryTile query_tile_of(const ForwardArguments &p, int tile)
{
	const HeadTile at = head_tile(tile, p.heads, p.query_tiles, p.together);
	const int first = (p.query_tiles - 1 - at.tile) * C::M,
		end = keys_seen(first + C::M, p.seqlen_k, p.causal, p.diagonal);
	return { at.head, first, (end + C::N - 1) / C::N };
}

/* the number of this block's next tile after `tile` */
__device__ inline int next_tile(const ForwardArguments &p, int tile)
{
	return gridDim.x
		+ (p.tile_counter == NULL ? tile : atomicAdd(p.tile_counter, 1u));
}

/* called once by each block: the last one sets both counters to 0 */
__device__ inline void reset_tile_counter(const ForwardArguments &p)
{
	if (p.tile_counter == NULL)
		return;
	__threadfence();
	if (atomicInc(p.tile_counter + 1, gridDim.x - 1) == gridDim.x - 1)
		atomicExch(p.tile_counter, 0u);
}

// produce tiles
/* starts the copy of `rows` rows of a head from `first` on, by column blocks */
template <class C>
__device__ inline void load_tile(unsigned to, const CUtensorMap *map,
	Barrier *full, uint64_t hint, int rows, int first, int h, int b)
{
	#pragma unroll
	for (int i = 0; i < C::W::BLOCKS; i++)
		tma_load(to + i * rows * C::W::WIDTH, map, full, hint,
			i * C::W::WIDTH / 2, first, h, b);
}

// start to load a tile of keys once its slot is free
/* starts the copy of the next tile of keys or values, once its slot is empty */
template <class C>
__device__ inline void load_keys(unsigned ring, RingPosition<C::STAGES> &at,
	Barrier *full, Barrier *empty, const CUtensorMap *map, int first, int h,
	int b)
{
	barrier_wait(empty + at.at, at.parity ^ 1);
	barrier_expect_tx(full + at.at, C::K_NBYTES);
	load_tile<C>(ring + at.at * C::K_NBYTES, map, full + at.at, EVICT_LAST,
		C::N, first, h, b);
	at.step();
}

// produce tiles
/* starts the copy of a tile of queries, once its buffer is empty; tile -1: tells
 * the consumers that there are no more */
template <class C>
__device__ inline void load_queries(const ForwardShared<C> &shared,
	const RingPosition<C::Q_STAGES> &at, const CUtensorMap *map, int tile,
		int first,
	int h, int b)
{
	/* until O, which lay there, has been read, and all consumers are through */
	barrier_wait(shared.q_empty + at.at, at.parity ^ 1);
	shared.tile[at.at] = tile;
	if (tile < 0) {
		barrier_arrive(shared.q_full + at.at);
		return;
	}
	barrier_expect_tx(shared.q_full + at.at, C::Q_TILES * C::Q_NBYTES);
	#pragma unroll
	for (int i = 0; i < C::Q_TILES; i++)
		load_tile<C>(shared.queries(at.at, i), map, shared.q_full + at.at,
			EVICT_FIRST, 64, first + 64 * i, h, b);
}

// follow the consumers' order
template <class C>
__device__ inline void produce(const ForwardShared<C> &shared,
	const ForwardMaps &maps,
	const ForwardArguments &p)
{
	RingPosition<C::Q_STAGES> q;
	RingPosition<C::STAGES> k, v;
	int tile = blockIdx.x;
	while (tile < p.tiles) {
		const QueryTile query_tile = query_tile_of<C>(p, tile);
		const int b = query_tile.head / p.H, h = query_tile.head - b * p.H;
		const auto load_k = [&](int j) {
			load_keys<C>(shared.k, k, shared.k_full, shared.k_empty, &maps.k,
				j * C::N, h / p.group, b);
		};
		const auto load_v = [&](int j) {
			load_keys<C>(shared.v, v, shared.v_full, shared.v_empty, &maps.v,
				j * C::N, h / p.group, b);
		};
		int j = query_tile.key_tiles - 1;
		load_k(j);
		load_queries<C>(shared, q, &maps.q, tile, query_tile.first, h, b);
		q.step();
		for (; j > 0; j--) {
			load_k(j - 1);
			load_v(j);
		}
		/* late, so that a block that is done earlier takes it */
		tile = next_tile(p, tile);
		load_v(0);
	}
	reset_tile_counter(p);
	load_queries<C>(shared, q, &maps.q, -1, 0, 0, 0);
}

// exponentiate scores on Hopper
/* for each of a thread's two rows, low = 0 or 1: maximum of the scores in the
 * log2 domain, up to 8 behind; sum of this thread's exponentials; the factor by
 * which earlier sums are rescaled */
struct RowState {
	float row_max[2], sum[2], rescale[2];
	/* what is subtracted from this tile's scores: row_max, or 0 if it is huge */
	float offset[2];
};

/* masks keys after `last`, which is given for each row and counted from this
 * thread's first column */
template <int R>
__device__ __forceinline__ void apply_mask(float (&s)[R], const int (&last)[2])
{
	#pragma unroll
	for (int i = 0; i < R; i++)
		if (i / 4 * 8 + i % 2 > last[i / 2 % 2])
			s[i] = -INFINITY;
}

// raise the maximum of a warp's rows
/* raises a row's maximum where a score exceeds it by more than 8; true: sums of
 * this warp must be rescaled. A huge maximum is subtracted here */
template <int R>
__device__ __forceinline__ bool update_row_max(float (&s)[R],
	RowState &rows, float base2)
{
	float top[2][2];
	bool over = false;
	#pragma unroll
	for (int i = 0; i < R; i++) {
		float &x = top[i / 2 % 2][i % 2];
		x = i < 4 ? s[i] : fmaxf(x, s[i]);
	}
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		top[low][0] = quad_max(fmaxf(top[low][0], top[low][1])) * base2;
		over |= top[low][0] > rows.row_max[low] + 8 || huge(rows.row_max[low]);
	}
	if (!__any_sync(0xffffffff, over))
		return false;
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const float next = fmaxf(rows.row_max[low], top[low][0]);
		rows.rescale[low] = exp2_approx(rows.row_max[low] - next);
		rows.row_max[low] = next;
		rows.sum[low] *= rows.rescale[low];
	}
	settle_huge_scores(s, rows.offset, rows.row_max, base2);
	return true;
}

// exponentiate scores against the row maximum
/* turns scores s into 2^(base2 s - offset), and adds them to the rows' sums */
template <int R>
__device__ __forceinline__ void exp_scores(float (&s)[R], RowState &rows,
	float base2)
{
	float sum[2][2] = {};
	#pragma unroll
	for (int i = 0; i < R; i++) {
		s[i] = exp2_approx(fmaf(s[i], base2, -rows.offset[i / 2 % 2]));
		sum[i / 2 % 2][i % 2] += s[i];
	}
	rows.sum[0] += sum[0][0] + sum[0][1];
	rows.sum[1] += sum[1][0] + sum[1][1];
}

/* rounds accumulators to operand A; wgmma leaves the one as it takes the other */
template <class T, int R>
__device__ __forceinline__ void narrow(unsigned (&p)[R / 2], const float (&s)[R])
{
	#pragma unroll
	for (int i = 0; i < R / 2; i++)
		p[i] = pack<T>(s[2 * i], s[2 * i + 1]);
}

template <int R>
__device__ __forceinline__ void rescale_accumulators(float (&o)[R],
	const RowState &rows)
{
	#pragma unroll
	for (int i = 0; i < R; i++)
		o[i] *= rows.rescale[i / 2 % 2];
}
#endif
