/* split_fp16_tiles.cuh: arrays as tiles of split fp16, and what both passes of
 * attention in split fp16 do with tiles */
#ifndef OPS_CUDA_SPLIT_FP16_TILES_CUH
#define OPS_CUDA_SPLIT_FP16_TILES_CUH

#include <float.h>

#include "ops/cuda/split_fp16.cuh"

// size blocks of threads, and tiles in scratch memory
/* P is in units of 2^-14, so that fp16 has small ones as well */
constexpr float P_EXPONENT = 14;
[[maybe_unused]] constexpr float P_UNIT = 0x1p-14f;         /* on Hopper only */
/* bytes of shared memory: a block's limit, for barriers, to round the start up */
enum { MOST_SHARED = 232448, BARRIER_BYTES = 256, ROUND_UP = 1024 };
/* a block: two consumer warpgroups, and one whose thread PRODUCER starts copies;
 * registers of a thread of each, 3 * 168 in all as at the start */
enum { GROUPS = 2, PRODUCER = GROUPS * WARPGROUP, THREADS = PRODUCER + WARPGROUP,
	PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232 };

/* an array as tiles (heads, count, 2, 64, D), and their units (heads, count) */
struct SplitTiles {
	char *at;
	float *units;
	int count;                      /* tiles of a head */

	template <int D>
	__device__ const char *tile(int head, int i) const
	{
		return at + ((size_t)head * count + i) * SplitTile<D>::TILE;
	}
	__device__ const float *unit(int head, int i) const
	{
		return units + (size_t)head * count + i;
	}
};

// split arrays into tiles of hi and lo
/* an array x (heads, n, D) to be split; wide: may 16 bytes be read at once? */
struct SplitInput {
	Heads x;
	int n, group;                   /* group: heads that share one of x */
	bool wide;
	SplitTiles to;
};

enum { SPLITTERS = 128, MOST_SPLITS = 4 };
struct SplitInputs {
	SplitInput at[MOST_SPLITS];
	size_t heads, H;
};

template <class T>
__device__ inline HeadRows<T> rows_of_head(Heads x, int head, size_t H, size_t n)
{
	const int batch = head / (int)H, rest = head % (int)H;
	return { (T *)x.x.at + batch * x.batch + rest * x.head, x.row, (int)n };
}

__device__ inline void load_eight(float (&x)[8], const float *from, bool wide)
{
	if (wide)
		load_by<4>(x, from);
	else
		load_by<1>(x, from);
}

__device__ inline void store_eight(char *tile, int lo_at, unsigned at,
	const float (&x)[8])
{
	uint4 high, low;
	split(high.x, low.x, x[0], x[1]);
	split(high.y, low.y, x[2], x[3]);
	split(high.z, low.z, x[4], x[5]);
	split(high.w, low.w, x[6], x[7]);
	*(uint4 *)(tile + at) = high;
	*(uint4 *)(tile + lo_at + at) = low;
}

/* splits tiles of 64 rows; rows after the last become 0
 * bytes: x once, its two parts, as many, once
 * grid: (tiles of the array that has most, arrays) */
template <int D>
__global__ __launch_bounds__(SPLITTERS) void split_tiles(
	const __grid_constant__ SplitInputs all)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	using P = SplitTile<D>;
	constexpr int ACROSS = D / 8, TIMES = ROWS * ACROSS / SPLITTERS;
	const SplitInput &s = all.at[blockIdx.y];
	if (blockIdx.x >= all.heads * s.to.count)
		return;                     /* another array has more tiles */
	const int head = blockIdx.x / s.to.count, tile = blockIdx.x % s.to.count;
	const auto rows = rows_of_head<const float>(s.x, head / s.group,
		all.H / s.group, s.n);
	float x[TIMES][8], largest = 0;
	// read a part of the tile, and find its largest
	#pragma unroll
	for (int i = 0; i < TIMES; i++) {
		const int at = i * SPLITTERS + threadIdx.x,
			row = tile * ROWS + at / ACROSS;
		#pragma unroll
		for (int k = 0; k < 8; k++)
			x[i][k] = 0;
		if (row < s.n)
			load_eight(x[i], rows.at + row * rows.step + at % ACROSS * 8,
				s.wide);
		#pragma unroll
		for (int k = 0; k < 8; k++)
			largest = fmaxf(largest, fabsf(x[i][k]));
	}
	const SplitUnit unit = unit_for(block_max(largest));
	// write this part as hi and lo
	char *to = s.to.at + (size_t)blockIdx.x * P::TILE;
	#pragma unroll
	for (int i = 0; i < TIMES; i++) {
		const int at = i * SPLITTERS + threadIdx.x;
		#pragma unroll
		for (int k = 0; k < 8; k++)
			x[i][k] *= unit.inverse;
		store_eight(to, P::PART_NBYTES, P::at(at / ACROSS, at % ACROSS * 8), x[i]);
	}
	if (threadIdx.x == 0)
		s.to.units[blockIdx.x] = unit.one;
#endif
}

// place blocks, and copy tiles
/* the head and the tile of a block of threads */
struct BlockTile {
	int head, tile;
};

/* heads follow one another; last_first: tiles of a head go from the last on */
__device__ inline BlockTile block_tile_of(int tiles, bool last_first)
{
	const int i = blockIdx.x % tiles;
	return { (int)(blockIdx.x / tiles), last_first ? tiles - 1 - i : i };
}

/* the number of tiles of keys that a tile of queries sees */
__device__ inline int tiles_seen(const SplitTiles &k, int tile, bool causal)
{
	return causal ? min(k.count, tile + 1) : k.count;
}

/* the thread's warpgroup; by the shuffle the compiler knows that it is uniform */
__device__ inline int group_of_thread()
{
	return __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);
}

/* the upper of a thread's two rows, counted in its warpgroup */
__device__ inline int row_of_thread()
{
	return threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
}

/* starts the copy of a tile to shared memory; `full` counts its bytes */
template <int D>
__device__ inline void copy_tile(unsigned to, const SplitTiles &from, int head,
	int i, Barrier *full)
{
	using P = SplitTile<D>;
	const char *tile = from.tile<D>(head, i);
	bulk_load(to, tile, P::PART_NBYTES, full);
	bulk_load(to + P::PART_NBYTES, tile + P::PART_NBYTES, P::PART_NBYTES, full);
}

// mask keys, and exponentiate
/* masks keys after the last that a row sees; first: key of the first column */
__device__ __forceinline__ void apply_mask(float (&s)[32], int row, int first,
	int seqlen_k, bool causal)
{
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const int last = causal ? min(row + 8 * low, seqlen_k - 1)
			: seqlen_k - 1, limit = last - first - threadIdx.x % 4 * 2;
		#pragma unroll
		for (int i = 0; i < 16; i++)
			if (i / 2 * 8 + i % 2 > limit)
				s[i / 2 * 4 + 2 * low + i % 2] = -INFINITY;
	}
}

/* does any row of a tile of queries not see all of a tile of keys? */
__device__ __forceinline__ bool needs_mask(int queries_tile, int keys_tile,
	int seqlen_k, bool causal)
{
	return (keys_tile + 1) * ROWS > seqlen_k
		|| (causal && keys_tile >= queries_tile);
}

/* the factor of scores; above 0, so that -inf stays -inf, and finite, so that 0
 * stays 0 */
__device__ __forceinline__ float scale_of(float scale, float unit)
{
	return fminf(fmaxf(scale * unit, FLT_MIN), FLT_MAX);
}

/* exp(scale score - L) in P_UNIT; the difference is rounded once */
__device__ __forceinline__ float exp_score(float score, float scale, float L)
{
	return exp2_approx(fmaf(fmaf(score, scale, -L), LOG2_E, P_EXPONENT));
}

// pass accumulators on, and write them
/* stores a warpgroup's accumulators to rows of x; first: a thread's upper row */
template <int D>
__device__ inline void write_accumulators(HeadRows<float> x, int first,
	const float (&o)[D / 2], bool wide)
{
	#pragma unroll
	for (int i = 0; i < D / 4; i++) {
		const int row = first + i % 2 * 8;
		const float pair[2] = { o[2 * i], o[2 * i + 1] };
		if (row >= x.n)
			continue;
		float *to = x.at + row * x.step + i / 2 * 8 + threadIdx.x % 4 * 2;
		if (wide)
			store_by<2>(to, pair);
		else
			store_by<1>(to, pair);
	}
}

/* rotates rows back by their angles; first: the thread's upper row; cosine NULL:
 * not rotated */
template <int D>
__device__ inline void rope_backward(float (&x)[D / 2],
	const AttentionGradient &g, int first, int n)
{
	if (g.cosine.at == NULL)
		return;
	#pragma unroll
	for (int i = 0; i < D / 4; i++) {
		const int row = first + i % 2 * 8;
		if (row >= n)
			continue;
		const size_t at = row * (size_t)(D / 2) + i / 2 * 4 + threadIdx.x % 4;
		const float c = ((const float *)g.cosine.at)[at],
			s = ((const float *)g.sine.at)[at], even = x[2 * i],
			odd = x[2 * i + 1];
		x[2 * i] = c * even + s * odd;
		x[2 * i + 1] = c * odd - s * even;
	}
}

// load tiles of K and V into a ring
/* the start of a ring's memory, and its first barrier, that of the tiles that the
 * block owns */
struct SharedRing {
	unsigned start;                 /* a multiple of 1024 */
	Barrier *fixed_full;

	__device__ SharedRing(char *memory, int barriers)
	{
		start = (smem_address(memory) + ROUND_UP - 1) / ROUND_UP * ROUND_UP;
		fixed_full = (Barrier *)(memory + start - smem_address(memory)
			+ barriers);
	}
};

/* shared memory of kernels whose blocks own FIXED tiles of queries while pairs
 * of tiles of keys pass by: K and V. Pair j is for warpgroup j % GROUPS */
template <int D, int FIXED> struct KeyRing : SharedRing {
	static constexpr int TILE = SplitTile<D>::TILE;
	static constexpr int ROOM = (MOST_SHARED - ROUND_UP - BARRIER_BYTES
		- FIXED * TILE) / (2 * TILE);
	static constexpr int STAGES = ROOM > 4 ? 4 : ROOM;
	static constexpr int RING = FIXED * TILE,
		BARRIERS = RING + STAGES * 2 * TILE,
		NBYTES = BARRIERS + BARRIER_BYTES + ROUND_UP;
	static_assert(STAGES >= GROUPS, "each warpgroup has a pair");
	static_assert((1 + 4 * STAGES) * sizeof(Barrier) <= BARRIER_BYTES, "fits");
	static_assert(2 * TILE >= (D / 2 + 4) * WARPGROUP * (int)sizeof(float),
		"sums pass through the place of a pair");

	Barrier *k_full, *v_full, *k_empty, *v_empty;

	// find places in the ring of keys
	__device__ explicit KeyRing(char *memory) : SharedRing(memory, BARRIERS)
	{
		k_full = fixed_full + 1;
		v_full = k_full + STAGES;
		k_empty = v_full + STAGES;
		v_empty = k_empty + STAGES;
	}
	__device__ unsigned fixed(int i) const { return start + i * TILE; }
	__device__ unsigned k(int stage) const
	{
		return start + RING + stage * 2 * TILE;
	}
	__device__ unsigned v(int stage) const { return k(stage) + TILE; }

	/* stage and parity of pair j */
	__device__ static int stage(int j) { return j % STAGES; }
	__device__ static unsigned parity(int j) { return j / STAGES & 1; }
	// wait for a pair
	/* waits until K or V of pair j is there; where another warpgroup reads pair
	 * j - STAGES, first until it has, since parity could mistake the round before
	 * that for this one */
	__device__ void wait_full(Barrier *full, Barrier *empty, int j) const
	{
		if (STAGES % GROUPS != 0 && j >= STAGES)
			barrier_wait(empty + stage(j), parity(j - STAGES));
		barrier_wait(full + stage(j), parity(j));
	}
	// start the barriers of the ring of keys
	/* called by one thread; __syncthreads() must follow */
	__device__ void start_barriers() const
	{
		barrier_init(fixed_full, 1);
		for (int i = 0; i < STAGES; i++) {
			barrier_init(k_full + i, 1);
			barrier_init(v_full + i, 1);
			barrier_init(k_empty + i, WARPGROUP);
			barrier_init(v_empty + i, WARPGROUP);
		}
		fence_barrier_init();
	}
	// load pairs of keys and values
	/* called by one thread: loads pairs 0 ... count - 1 */
	__device__ void copy_keys(const SplitTiles &K, const SplitTiles &V, int head,
		int count) const
	{
		RingPosition<STAGES> at;
		for (int j = 0; j < count; j++, at.step()) {
			/* the first round finds stages that nobody has used */
			barrier_wait(k_empty + at.at, at.parity ^ 1);
			barrier_expect_tx(k_full + at.at, TILE);
			copy_tile<D>(k(at.at), K, head, j, k_full + at.at);
			barrier_wait(v_empty + at.at, at.parity ^ 1);
			barrier_expect_tx(v_full + at.at, TILE);
			copy_tile<D>(v(at.at), V, head, j, v_full + at.at);
		}
	}
	// give each warpgroup of a block its role
	/* calls work(group) in each consumer warpgroup, while one thread loads the tiles
	 * that the block owns, by own(), and pairs 0 ... count - 1 */
	template <class Own, class Work>
	__device__ __forceinline__ void run(const SplitTiles &K, const SplitTiles &V,
		int head,
		int count, Own own, Work work) const
	{
		const int group = group_of_thread();
		if (threadIdx.x == PRODUCER)
			start_barriers();
		__syncthreads();                /* barriers are ready for all */
		if (group < GROUPS) {
			setmaxnreg_inc<CONSUMER_REGISTERS>();
			work(group);
		} else {
			setmaxnreg_dec<PRODUCER_REGISTERS>();
			if (threadIdx.x == PRODUCER) {
				barrier_expect_tx(fixed_full, FIXED * TILE);
				own();
				copy_keys(K, V, head, count);
			}
		}
	}
};
#endif
