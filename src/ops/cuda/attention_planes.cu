/* attention_planes.cu: attention of fp32 numbers, forward and backward, on
 * Hopper's tensor cores. Each number is split into two of fp16 (planes.cuh),
 * and each product is three.
 * 1. split_tiles: Q, K, V (and dO) become tiles of planes in scratch memory, in
 *    the order in which products read them, so that one copy brings a plane
 * 2. forward: attend_planes; backward: find_deltas, planes_queries for dQ,
 *    planes_keys for dK and dV. No block waits for another, and all sums have
 *    one order: the same inputs give the same bits. */
#include <float.h>

#include "ops/cuda/hopper.h"
#include "ops/cuda/planes.cuh"

/* weights are in units of 2^-14, so that fp16 has small ones as well */
constexpr float WEIGHT_POWER = 14;
[[maybe_unused]] constexpr float WEIGHT_UNIT = 0x1p-14f;    /* on Hopper only */
/* bytes of shared memory that a block may have; of barriers; to round up */
enum { MOST_SHARED = 232448, BARRIER_BYTES = 256, ROUND_UP = 1024 };
/* a block of threads: two warpgroups that multiply, and one of which a thread
 * copies; registers of a thread, 3 * 168 in all as at the start */
enum { GROUPS = 2, COPIER = GROUPS * WARPGROUP, THREADS = COPIER + WARPGROUP,
	FEW = 40, MANY = 232 };
/* tiles (heads, count, 2, 64, D) of an array, and their units (heads, count) */
struct Tiles {
	char *at;
	float *units;
	int count;                      /* of a head */

	template <int D>
	__device__ const char *tile(int head, int i) const
	{
		return at + ((size_t)head * count + i) * Planes<D>::TILE;
	}
	__device__ const float *unit(int head, int i) const
	{
		return units + (size_t)head * count + i;
	}
};
/* an array x (heads, n, D), to be split; wide: may 16 bytes be read at once? */
struct Split {
	Heads x;
	int n;
	bool wide;
	Tiles to;
};

enum { SPLITTERS = 128, MOST_SPLITS = 4 };
struct Splits {
	Split at[MOST_SPLITS];
	size_t heads, H;
};

template <class T>
__device__ inline Rows<T> rows_of_head(Heads x, int head, size_t H, size_t n)
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

__device__ inline void store_eight(char *tile, int plane, unsigned at,
	const float (&x)[8])
{
	uint4 high, low;
	split(high.x, low.x, x[0], x[1]);
	split(high.y, low.y, x[2], x[3]);
	split(high.z, low.z, x[4], x[5]);
	split(high.w, low.w, x[6], x[7]);
	*(uint4 *)(tile + at) = high;
	*(uint4 *)(tile + plane + at) = low;
}
/* a tile of 64 rows; those after the last are 0
 * bytes: x once, its planes, as many, once
 * grid: (tiles of the array that has most, arrays) */
template <int D>
__global__ __launch_bounds__(SPLITTERS) void split_tiles(
	const __grid_constant__ Splits all)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	using P = Planes<D>;
	constexpr int ACROSS = D / 8, TIMES = ROWS * ACROSS / SPLITTERS;
	const Split &s = all.at[blockIdx.y];
	if (blockIdx.x >= all.heads * s.to.count)
		return;                     /* another array has more tiles */
	const int head = blockIdx.x / s.to.count, tile = blockIdx.x % s.to.count;
	const auto rows = rows_of_head<const float>(s.x, head, all.H, s.n);
	float x[TIMES][8], largest = 0;
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
	const Unit unit = unit_for(block_max(largest));
	char *to = s.to.at + (size_t)blockIdx.x * P::TILE;
	#pragma unroll
	for (int i = 0; i < TIMES; i++) {
		const int at = i * SPLITTERS + threadIdx.x;
		#pragma unroll
		for (int k = 0; k < 8; k++)
			x[i][k] *= unit.inverse;
		store_eight(to, P::PLANE, P::at(at / ACROSS, at % ACROSS * 8), x[i]);
	}
	if (threadIdx.x == 0)
		s.to.units[blockIdx.x] = unit.one;
#endif
}
/* where a block of threads finds its tile */
struct Place {
	int head, tile;
};

/* one head after the other; in each the tiles that see most come first */
__device__ inline Place place_of_block(int tiles, bool last_first)
{
	const int i = blockIdx.x % tiles;
	return { (int)(blockIdx.x / tiles), last_first ? tiles - 1 - i : i };
}

/* tiles of keys that a tile of queries sees */
__device__ inline int tiles_seen(const Tiles &k, int tile, bool causal)
{
	return causal ? min(k.count, tile + 1) : k.count;
}

/* the same for all threads of a warp, and the compiler knows */
__device__ inline int group_of_thread()
{
	return __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);
}
/* of a thread in its warpgroup: the upper of its two rows */
__device__ inline int row_of_thread()
{
	return threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
}

/* a tile comes to shared memory; full's bytes count down */
template <int D>
__device__ inline void copy_tile(unsigned to, const Tiles &from, int head,
	int i, Barrier *full)
{
	using P = Planes<D>;
	const char *tile = from.tile<D>(head, i);
	load_bytes(to, tile, P::PLANE, full);
	load_bytes(to + P::PLANE, tile + P::PLANE, P::PLANE, full);
}

/* the warp has read what the barrier is about */
__device__ __forceinline__ void release(Barrier *empty)
{
	__syncwarp();
	if (threadIdx.x % 32 == 0)
		barrier_arrive(empty);
}
/* hides keys after the last that a row sees; first: key of the first column */
__device__ __forceinline__ void hide_keys(float (&s)[32], int row, int first,
	int keys, bool causal)
{
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const int last = causal ? min(row + 8 * low, keys - 1) : keys - 1,
			limit = last - first - threadIdx.x % 4 * 2;
		#pragma unroll
		for (int i = 0; i < 16; i++)
			if (i / 2 * 8 + i % 2 > limit)
				s[i / 2 * 4 + 2 * low + i % 2] = -INFINITY;
	}
}

/* does any row of a tile of queries not see all of a tile of keys? */
__device__ __forceinline__ bool hides(int queries_tile, int keys_tile, int keys,
	bool causal)
{
	return (keys_tile + 1) * ROWS > keys
		|| (causal && keys_tile >= queries_tile);
}
/* what scores are multiplied by; above 0, so that -inf stays -inf */
__device__ __forceinline__ float scale_of(float scale, float unit)
{
	return fmaxf(scale * unit, FLT_MIN);
}

/* exp(scale score - L) in WEIGHT_UNIT; they cancel before more is rounded */
__device__ __forceinline__ float weight_of(float score, float scale, float L)
{
	return power2(fmaf(fmaf(score, scale, -L), LOG2_E, WEIGHT_POWER));
}
/* sums of one warpgroup pass to the other by way of shared memory:
 * R floats of each of 128 threads */
template <int R>
__device__ inline void leave_sums(unsigned to, const float (&x)[R])
{
	#pragma unroll
	for (int i = 0; i < R; i += 4)
		store_four(to + i * 512 + threadIdx.x % WARPGROUP * 16, &x[i]);
}

/* f(i, number i) */
template <int R, class Each>
__device__ __forceinline__ void with_sums(unsigned from, Each f)
{
	#pragma unroll
	for (int i = 0; i < R; i += 4) {
		float x[4];
		load_four(x, from + i * 512 + threadIdx.x % WARPGROUP * 16);
		#pragma unroll
		for (int k = 0; k < 4; k++)
			f(i + k, x[k]);
	}
}
/* sums of a warpgroup to rows first ... of x */
template <int D>
__device__ inline void write_sums(Rows<float> x, int first,
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
/* turns rows first ... back by their angles */
template <int D>
__device__ inline void turn_sums_back(float (&x)[D / 2],
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
/* shared memory of kernels whose blocks own FIXED tiles of queries while pairs
 * of tiles of keys pass by: K and V. Pair j is for warpgroup j % GROUPS */
template <int D, int FIXED> struct KeyRing {
	static constexpr int TILE = Planes<D>::TILE;
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

	unsigned start;                 /* multiple of 1024 */
	Barrier *fixed_full, *k_full, *v_full, *k_empty, *v_empty;

	__device__ explicit KeyRing(char *memory)
	{
		start = (shared_at(memory) + ROUND_UP - 1) / ROUND_UP * ROUND_UP;
		fixed_full = (Barrier *)(memory + start - shared_at(memory) + BARRIERS);
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

	/* of pair j */
	__device__ static int stage(int j) { return j % STAGES; }
	__device__ static unsigned parity(int j) { return j / STAGES & 1; }
	/* one thread; all then meet */
	__device__ void start_barriers() const
	{
		barrier_init(fixed_full, 1);
		for (int i = 0; i < STAGES; i++) {
			barrier_init(k_full + i, 1);
			barrier_init(v_full + i, 1);
			barrier_init(k_empty + i, 4);   /* warps of a warpgroup */
			barrier_init(v_empty + i, 4);
		}
		barriers_ready();
	}
	/* one thread: pairs 0 ... count - 1 */
	__device__ void copy_keys(const Tiles &K, const Tiles &V, int head,
		int count) const
	{
		Ring<STAGES> at;
		for (int j = 0; j < count; j++, at.step()) {
			/* the first round finds stages that nobody has used */
			barrier_wait(k_empty + at.at, at.parity ^ 1);
			barrier_expect(k_full + at.at, TILE);
			copy_tile<D>(k(at.at), K, head, j, k_full + at.at);
			barrier_wait(v_empty + at.at, at.parity ^ 1);
			barrier_expect(v_full + at.at, TILE);
			copy_tile<D>(v(at.at), V, head, j, v_full + at.at);
		}
	}
};
struct Forward {
	Attention a;
	Tiles q, k, v;
	bool wide;                      /* may O be written in pairs? */
};

/* of a thread's two rows: the largest score, whose weight is 1; the sum of this
 * thread's weights, in WEIGHT_UNIT */
struct Weighed {
	float largest[2], sum[2];
};

/* scores become weights relative to the largest so far, in WEIGHT_UNIT; shrink:
 * what former sums are multiplied by */
__device__ __forceinline__ void weigh_scores(float (&s)[32], Weighed &w,
	float (&shrink)[2], float scale)
{
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		float most[2] = { s[2 * low], s[2 * low + 1] }, sum[2] = { 0, 0 };
		#pragma unroll
		for (int i = 2; i < 16; i++)
			most[i % 2] = fmaxf(most[i % 2], s[i / 2 * 4 + 2 * low + i % 2]);
		const float largest = fmaxf(w.largest[low],
			row_max(fmaxf(most[0], most[1])) * scale);
		shrink[low] = power2((w.largest[low] - largest) * LOG2_E);
		w.largest[low] = largest;
		#pragma unroll
		for (int i = 0; i < 16; i++) {
			float &x = s[i / 2 * 4 + 2 * low + i % 2];
			x = weight_of(x, scale, largest);
			sum[i % 2] += x;
		}
		w.sum[low] = fmaf(w.sum[low], shrink[low], sum[0] + sum[1]);
	}
}
/* the sums of two warpgroups, each relative to its own largest scores, become
 * one; the last warpgroup leaves its own in shared memory */
template <int D>
__device__ inline void join_weighed(float (&o)[D / 2], Weighed &w, unsigned at,
	int group)
{
	const unsigned numbers = at + D / 2 * 512;
	meet(1, GROUPS * WARPGROUP);    /* all tiles have been read */
	if (group == GROUPS - 1) {
		const float mine[4] = { w.largest[0], w.largest[1], w.sum[0],
			w.sum[1] };
		leave_sums(at, o);
		leave_sums(numbers, mine);
	}
	meet(1, GROUPS * WARPGROUP);    /* the sums are there */
	if (group > 0)
		return;
	float keep[2], other[4], add[2];
	with_sums<4>(numbers, [&](int i, float x) { other[i] = x; });
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const float largest = fmaxf(w.largest[low], other[low]);
		keep[low] = power2((w.largest[low] - largest) * LOG2_E);
		add[low] = power2((other[low] - largest) * LOG2_E);
		w.largest[low] = largest;
		w.sum[low] = w.sum[low] * keep[low] + other[2 + low] * add[low];
	}
	with_sums<D / 2>(at, [&](int i, float x) {
		o[i] = o[i] * keep[i / 2 % 2] + x * add[i / 2 % 2];
	});
}
/* O and L of 64 rows from sums of all keys */
template <int D>
__device__ inline void finish_queries(float (&o)[D / 2], const Weighed &w,
	const Forward &f, const Place &p)
{
	const int first = p.tile * ROWS + row_of_thread(), n = (int)f.a.queries;
	float inverse[2];
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const int row = first + 8 * low;
		const float total = row_sum(w.sum[low]);
		inverse[low] = 1 / total;
		if (row < n && threadIdx.x % 4 == 0)
			((float *)f.a.L.at)[p.head * (size_t)n + row] =
				(float)(w.largest[low] + log((double)total * WEIGHT_UNIT));
	}
	#pragma unroll
	for (int i = 0; i < D / 2; i++)
		o[i] *= inverse[i / 2 % 2];
	write_sums<D>(rows_of_head<float>(f.a.o, p.head, f.a.H, n), first, o,
		f.wide);
}
/* a warpgroup: 64 queries and every second tile of keys, then O */
template <int D>
__device__ inline void attend_group(const Forward &f, const Place &p,
	const KeyRing<D, 1> &ring, int count, int group)
{
	using R = KeyRing<D, 1>;
	const float scale = (float)f.a.scale * *f.q.unit(p.head, p.tile);
	float s[32], o[D / 2], t[D / 2], shrink[2];
	unsigned high[16], low[16];
	Weighed w = { { -INFINITY, -INFINITY }, { 0, 0 } };
	#pragma unroll
	for (int i = 0; i < D / 2; i++)
		o[i] = 0;
	barrier_wait(ring.fixed_full, 0);
	for (int j = group; j < count; j += GROUPS) {
		const int stage = R::stage(j);
		const float k_unit = *f.k.unit(p.head, j),
			v_unit = *f.v.unit(p.head, j);
		barrier_wait(ring.k_full + stage, R::parity(j));
		start_rows<D>(s, ring.fixed(0), ring.k(stage));
		products_await<0>();
		pin(s);
		release(ring.k_empty + stage);
		if (hides(p.tile, j, (int)f.a.keys, f.a.causal))
			hide_keys(s, p.tile * ROWS + row_of_thread(), j * ROWS,
				(int)f.a.keys, f.a.causal);
		weigh_scores(s, w, shrink, scale_of(scale, k_unit));
		split_sums(high, low, s);
		barrier_wait(ring.v_full + stage, R::parity(j));
		start_sums<D>(t, high, low, ring.v(stage));
		await_sums(t, high, low);
		release(ring.v_empty + stage);
		#pragma unroll
		for (int i = 0; i < D / 2; i++)
			o[i] = fmaf(t[i], v_unit, o[i] * shrink[i / 2 % 2]);
	}
	join_weighed<D>(o, w, ring.k(0), group);
	if (group == 0)
		finish_queries<D>(o, w, f, p);
}
/* O = softmax(scale Q K^T) V and L of 64 queries, keys in tiles of 64
 * FLOPs: 12 D of fp16 for each pair of query and key; bytes: Q, O, L once; K, V
 * from the L2 cache for each 64 queries
 * grid: B H tiles of queries */
template <int D>
__global__ __launch_bounds__(THREADS, 1) void attend_planes(
	const __grid_constant__ Forward f)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ char memory[];
	const KeyRing<D, 1> ring(memory);
	const Place p = place_of_block(f.q.count, f.a.causal);
	const int count = tiles_seen(f.k, p.tile, f.a.causal),
		group = group_of_thread();
	if (threadIdx.x == COPIER)
		ring.start_barriers();
	__syncthreads();                /* barriers are ready for all */
	if (group < GROUPS) {
		registers_up<MANY>();
		attend_group<D>(f, p, ring, count, group);
	} else {
		registers_down<FEW>();
		if (threadIdx.x == COPIER) {
			barrier_expect(ring.fixed_full, Planes<D>::TILE);
			copy_tile<D>(ring.fixed(0), f.q, p.head, p.tile, ring.fixed_full);
			ring.copy_keys(f.k, f.v, p.head, count);
		}
	}
#endif
}
/* L, deltas: (heads, tiles of queries, 64), in which after the last query L is
 * infinite and so P is 0. dS = P (dP - delta), P in WEIGHT_UNIT */
struct Backward {
	Attention a;
	AttentionGradient g;
	Tiles q, k, v, d_o;
	float *L, *deltas;
	bool wide, wide_o;              /* as of Forward; may O, dO be read so? */
};

enum { FINDERS = 256, TEAM = 8 };
/* eight threads for each row: delta = scale WEIGHT_UNIT rowsum(dO O)
 * bytes: O, dO, L once
 * grid: B H padded queries / 32, block: eight threads for each */
__global__ __launch_bounds__(FINDERS) void find_deltas(
	const __grid_constant__ Backward b)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	constexpr int EACH = FINDERS / TEAM;    /* rows of a block */
	const int n = (int)b.a.queries, blocks = b.q.count * ROWS / EACH,
		head = blockIdx.x / blocks,
		row = blockIdx.x % blocks * EACH + threadIdx.x / TEAM;
	const size_t at = (size_t)head * blocks * EACH + row;
	float sum = 0, L = INFINITY;
	if (row < n) {
		const auto o = rows_of_head<const float>(b.a.o, head, b.a.H, n),
			d_o = rows_of_head<const float>(b.g.o, head, b.a.H, n);
		for (int c = threadIdx.x % TEAM * 8; c < (int)b.a.D; c += TEAM * 8) {
			float x[8], y[8];
			load_eight(x, o.at + row * o.step + c, b.wide_o);
			load_eight(y, d_o.at + row * d_o.step + c, b.wide_o);
			#pragma unroll
			for (int k = 0; k < 8; k++)
				sum += x[k] * y[k];
		}
		L = ((const float *)b.a.L.at)[head * (size_t)n + row];
	}
	#pragma unroll
	for (int lane = TEAM / 2; lane > 0; lane /= 2)
		sum += __shfl_xor_sync(0xffffffff, sum, lane);
	if (threadIdx.x % TEAM == 0) {
		b.L[at] = L;
		b.deltas[at] = sum * (float)b.a.scale * WEIGHT_UNIT;
	}
#endif
}
/* the sums of a thread's two rows, in a unit of each row of this tile, become a
 * factor */
__device__ __forceinline__ void split_slopes(unsigned (&high)[16],
	unsigned (&low)[16], float (&units)[2], float (&ds)[32])
{
	#pragma unroll
	for (int lower = 0; lower < 2; lower++) {
		float most[2] = { 0, 0 };
		#pragma unroll
		for (int i = 0; i < 16; i++)
			most[i % 2] = fmaxf(most[i % 2],
				fabsf(ds[i / 2 * 4 + 2 * lower + i % 2]));
		const Unit unit = unit_for(row_max(fmaxf(most[0], most[1])));
		units[lower] = unit.one;
		#pragma unroll
		for (int i = 0; i < 16; i++)
			ds[i / 2 * 4 + 2 * lower + i % 2] *= unit.inverse;
	}
	split_sums(high, low, ds);
}
/* sums += t, which is in units of its rows and `unit` */
template <int R>
__device__ __forceinline__ void add_sums(float (&sums)[R], const float (&t)[R],
	const float (&units)[2], float unit)
{
	const float both[2] = { units[0] * unit, units[1] * unit };
	#pragma unroll
	for (int i = 0; i < R; i++)
		sums[i] = fmaf(t[i], both[i / 2 % 2], sums[i]);
}
/* a warpgroup: 64 queries and every second tile of keys, then dQ */
template <int D>
__device__ inline void queries_group(const Backward &b, const Place &p,
	const KeyRing<D, 2> &ring, int count, int group)
{
	using R = KeyRing<D, 2>;
	const float scale = (float)b.a.scale * *b.q.unit(p.head, p.tile),
		slope = (float)b.a.scale * WEIGHT_UNIT * *b.d_o.unit(p.head, p.tile);
	const int first = p.tile * ROWS + row_of_thread(), n = (int)b.a.queries;
	const size_t at = (size_t)p.head * b.q.count * ROWS + first;
	const float L[2] = { b.L[at], b.L[at + 8] },
		delta[2] = { b.deltas[at], b.deltas[at + 8] };
	float p_or_s[32], ds[32], dq[D / 2], t[D / 2], units[2];
	unsigned high[16], low[16];
	#pragma unroll
	for (int i = 0; i < D / 2; i++)
		dq[i] = 0;
	barrier_wait(ring.fixed_full, 0);
	for (int j = group; j < count; j += GROUPS) {
		const int stage = R::stage(j);
		const float k_unit = *b.k.unit(p.head, j),
			to_score = scale_of(scale, k_unit),
			rise = slope * *b.v.unit(p.head, j);
		barrier_wait(ring.k_full + stage, R::parity(j));
		start_rows<D>(p_or_s, ring.fixed(0), ring.k(stage));
		barrier_wait(ring.v_full + stage, R::parity(j));
		start_rows<D>(ds, ring.fixed(1), ring.v(stage));
		products_await<1>();            /* S is there */
		pin(p_or_s);
		if (hides(p.tile, j, (int)b.a.keys, b.a.causal))
			hide_keys(p_or_s, first, j * ROWS, (int)b.a.keys, b.a.causal);
		#pragma unroll
		for (int i = 0; i < 32; i++)
			p_or_s[i] = weight_of(p_or_s[i], to_score, L[i / 2 % 2]);
		pin(p_or_s);
		products_await<0>();            /* dP is there */
		pin(ds);
		release(ring.v_empty + stage);
		#pragma unroll
		for (int i = 0; i < 32; i++)
			ds[i] = p_or_s[i] * fmaf(ds[i], rise, -delta[i / 2 % 2]);
		split_slopes(high, low, units, ds);
		start_sums<D>(t, high, low, ring.k(stage));
		await_sums(t, high, low);
		release(ring.k_empty + stage);
		add_sums(dq, t, units, k_unit);
	}
	meet(1, GROUPS * WARPGROUP);    /* all tiles have been read */
	if (group == GROUPS - 1)
		leave_sums(ring.k(0), dq);
	meet(1, GROUPS * WARPGROUP);    /* the sums are there */
	if (group > 0)
		return;
	with_sums<D / 2>(ring.k(0), [&](int i, float x) { dq[i] += x; });
	turn_sums_back<D>(dq, b.g, first, n);
	write_sums<D>(rows_of_head<float>(b.g.q, p.head, b.a.H, n), first, dq,
		b.wide);
}
/* dQ = dS K of 64 queries, keys in tiles of 64
 * FLOPs: 18 D of fp16 for each pair of query and key; bytes: Q, dO, dQ once;
 * K, V from the L2 cache for each 64 queries
 * grid: B H tiles of queries */
template <int D>
__global__ __launch_bounds__(THREADS, 1) void planes_queries(
	const __grid_constant__ Backward b)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ char memory[];
	const KeyRing<D, 2> ring(memory);
	const Place p = place_of_block(b.q.count, b.a.causal);
	const int count = tiles_seen(b.k, p.tile, b.a.causal),
		group = group_of_thread();
	if (threadIdx.x == COPIER)
		ring.start_barriers();
	__syncthreads();                /* barriers are ready for all */
	if (group < GROUPS) {
		registers_up<MANY>();
		queries_group<D>(b, p, ring, count, group);
	} else {
		registers_down<FEW>();
		if (threadIdx.x == COPIER) {
			barrier_expect(ring.fixed_full, 2 * Planes<D>::TILE);
			copy_tile<D>(ring.fixed(0), b.q, p.head, p.tile, ring.fixed_full);
			copy_tile<D>(ring.fixed(1), b.d_o, p.head, p.tile, ring.fixed_full);
			ring.copy_keys(b.k, b.v, p.head, count);
		}
	}
#endif
}
/* shared memory of blocks that own a tile of keys while pairs of tiles of
 * queries pass by: Q with L, dO with deltas. One warpgroup finds P^T and
 * dV, and leaves P^T for the other, which finds dS^T and dK: both read all
 * tiles */
template <int D> struct QueryRing {
	static constexpr int TILE = Planes<D>::TILE, NUMBERS = ROWS * sizeof(float),
		SLOTS = 2, SLOT = ROWS * ROWS * sizeof(float),
		PAIR = 2 * (TILE + NUMBERS);
	static constexpr int ROOM = (MOST_SHARED - ROUND_UP - BARRIER_BYTES
		- 2 * TILE - SLOTS * SLOT) / PAIR;
	static constexpr int STAGES = ROOM > 4 ? 4 : ROOM;
	static constexpr int RING = 2 * TILE, WEIGHTS = RING + STAGES * 2 * TILE,
		LS = WEIGHTS + SLOTS * SLOT, DELTAS = LS + STAGES * NUMBERS,
		BARRIERS = DELTAS + STAGES * NUMBERS,
		NBYTES = BARRIERS + BARRIER_BYTES + ROUND_UP;
	static_assert(STAGES >= 2, "copies run beside products");
	static_assert((1 + 4 * STAGES + 2 * SLOTS) * sizeof(Barrier)
		<= BARRIER_BYTES, "fits");

	unsigned start;                 /* multiple of 1024 */
	Barrier *fixed_full, *q_full, *o_full, *q_empty, *o_empty, *p_full,
		*p_empty;

	__device__ explicit QueryRing(char *memory)
	{
		start = (shared_at(memory) + ROUND_UP - 1) / ROUND_UP * ROUND_UP;
		fixed_full = (Barrier *)(memory + start - shared_at(memory) + BARRIERS);
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
		return start + LS + stage * NUMBERS;
	}
	__device__ unsigned deltas(int stage) const
	{
		return start + DELTAS + stage * NUMBERS;
	}
	__device__ unsigned weights(int slot) const
	{
		return start + WEIGHTS + slot * SLOT;
	}
	/* one thread; all then meet */
	__device__ void start_barriers() const
	{
		barrier_init(fixed_full, 1);
		for (int i = 0; i < STAGES; i++) {
			barrier_init(q_full + i, 1);
			barrier_init(o_full + i, 1);
			barrier_init(q_empty + i, 4 * GROUPS);  /* warps */
			barrier_init(o_empty + i, 4 * GROUPS);
		}
		for (int i = 0; i < SLOTS; i++) {
			barrier_init(p_full + i, 4);
			barrier_init(p_empty + i, 4);
		}
		barriers_ready();
	}
	/* one thread: tiles first ... of queries to the last */
	__device__ void copy_queries(const Backward &b, int head, int first) const
	{
		const size_t before = (size_t)head * b.q.count;
		Ring<STAGES> at;
		for (int j = first; j < b.q.count; j++, at.step()) {
			Barrier *full = q_full + at.at;
			/* the first round finds stages that nobody has used */
			barrier_wait(q_empty + at.at, at.parity ^ 1);
			barrier_expect(full, TILE + NUMBERS);
			load_bytes(L(at.at), b.L + (before + j) * ROWS, NUMBERS, full);
			copy_tile<D>(q(at.at), b.q, head, j, full);
			full = o_full + at.at;
			barrier_wait(o_empty + at.at, at.parity ^ 1);
			barrier_expect(full, TILE + NUMBERS);
			load_bytes(deltas(at.at), b.deltas + (before + j) * ROWS, NUMBERS,
				full);
			copy_tile<D>(d_o(at.at), b.d_o, head, j, full);
		}
	}
};
/* f(element, its column's number) for all of a thread's; numbers: 64 in shared
 * memory */
template <class Each>
__device__ __forceinline__ void with_columns(unsigned numbers, Each f)
{
	#pragma unroll
	for (int c = 0; c < 8; c++) {
		float x[2];
		load_two(x, numbers + (c * 8 + threadIdx.x % 4 * 2) * 4);
		#pragma unroll
		for (int i = 0; i < 4; i++)
			f(4 * c + i, x[i % 2]);
	}
}

/* hides queries before a key; first: query of the first column */
__device__ __forceinline__ void hide_queries(float (&s)[32], int key, int first)
{
	#pragma unroll
	for (int i = 0; i < 32; i++)
		if (first + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2
				< key + i / 2 % 2 * 8)
			s[i] = -INFINITY;
}
/* a warpgroup: P^T of 64 keys, for the other, and dV */
template <int D>
__device__ inline void weights_group(const Backward &b, const Place &p,
	const QueryRing<D> &ring, int first)
{
	const float scale = (float)b.a.scale * *b.k.unit(p.head, p.tile),
		units[2] = { WEIGHT_UNIT, WEIGHT_UNIT };
	const int key = p.tile * ROWS + row_of_thread(), n = (int)b.a.keys;
	float s[32], dv[D / 2], t[D / 2];
	unsigned high[16], low[16];
	Ring<QueryRing<D>::STAGES> at;
	Ring<QueryRing<D>::SLOTS> slot;
	#pragma unroll
	for (int i = 0; i < D / 2; i++)
		dv[i] = 0;
	barrier_wait(ring.fixed_full, 0);
	for (int j = first; j < b.q.count; j++, at.step(), slot.step()) {
		const float to_score = scale_of(scale, *b.q.unit(p.head, j)),
			o_unit = *b.d_o.unit(p.head, j);
		barrier_wait(ring.q_full + at.at, at.parity);
		start_rows<D>(s, ring.k(), ring.q(at.at));
		products_await<0>();
		pin(s);
		if (b.a.causal && j == p.tile)
			hide_queries(s, key, j * ROWS);
		with_columns(ring.L(at.at), [&](int i, float L) {
			s[i] = weight_of(s[i], to_score, L);
		});
		release(ring.q_empty + at.at);
		barrier_wait(ring.p_empty + slot.at, slot.parity ^ 1);
		leave_sums(ring.weights(slot.at), s);
		release(ring.p_full + slot.at);
		split_sums(high, low, s);
		barrier_wait(ring.o_full + at.at, at.parity);
		start_sums<D>(t, high, low, ring.d_o(at.at));
		await_sums(t, high, low);
		release(ring.o_empty + at.at);
		add_sums(dv, t, units, o_unit);
	}
	write_sums<D>(rows_of_head<float>(b.g.v, p.head, b.a.H, n), key, dv,
		b.wide);
}
/* a warpgroup: dS^T of 64 keys, from the other's P^T, and dK */
template <int D>
__device__ inline void slopes_group(const Backward &b, const Place &p,
	const QueryRing<D> &ring, int first)
{
	const float slope = (float)b.a.scale * WEIGHT_UNIT
		* *b.v.unit(p.head, p.tile);
	const int key = p.tile * ROWS + row_of_thread(), n = (int)b.a.keys;
	float ds[32], dk[D / 2], t[D / 2], units[2];
	unsigned high[16], low[16];
	Ring<QueryRing<D>::STAGES> at;
	Ring<QueryRing<D>::SLOTS> slot;
	#pragma unroll
	for (int i = 0; i < D / 2; i++)
		dk[i] = 0;
	barrier_wait(ring.fixed_full, 0);
	for (int j = first; j < b.q.count; j++, at.step(), slot.step()) {
		const float rise = slope * *b.d_o.unit(p.head, j),
			q_unit = *b.q.unit(p.head, j);
		barrier_wait(ring.o_full + at.at, at.parity);
		start_rows<D>(ds, ring.v(), ring.d_o(at.at));
		products_await<0>();
		pin(ds);
		with_columns(ring.deltas(at.at), [&](int i, float delta) {
			ds[i] = fmaf(ds[i], rise, -delta);
		});
		release(ring.o_empty + at.at);
		barrier_wait(ring.p_full + slot.at, slot.parity);
		with_sums<32>(ring.weights(slot.at), [&](int i, float weight) {
			ds[i] *= weight;
		});
		release(ring.p_empty + slot.at);
		split_slopes(high, low, units, ds);
		barrier_wait(ring.q_full + at.at, at.parity);
		start_sums<D>(t, high, low, ring.q(at.at));
		await_sums(t, high, low);
		release(ring.q_empty + at.at);
		add_sums(dk, t, units, q_unit);
	}
	turn_sums_back<D>(dk, b.g, key, n);
	write_sums<D>(rows_of_head<float>(b.g.k, p.head, b.a.H, n), key, dk,
		b.wide);
}
/* dV = P^T dO, dK = dS^T Q of 64 keys, queries in tiles of 64
 * FLOPs: 24 D of fp16 for each pair of query and key; bytes: K, V, dK, dV once;
 * Q, dO from the L2 cache for each 64 keys
 * grid: B H tiles of keys */
template <int D>
__global__ __launch_bounds__(THREADS, 1) void planes_keys(
	const __grid_constant__ Backward b)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ char memory[];
	const QueryRing<D> ring(memory);
	const Place p = place_of_block(b.k.count, false);
	const int first = b.a.causal ? p.tile : 0, group = group_of_thread();
	if (threadIdx.x == COPIER)
		ring.start_barriers();
	__syncthreads();                /* barriers are ready for all */
	if (group == 0) {
		registers_up<MANY>();
		weights_group<D>(b, p, ring, first);
	} else if (group == 1) {
		registers_up<MANY>();
		slopes_group<D>(b, p, ring, first);
	} else {
		registers_down<FEW>();
		if (threadIdx.x == COPIER) {
			barrier_expect(ring.fixed_full, 2 * Planes<D>::TILE);
			copy_tile<D>(ring.k(), b.k, p.head, p.tile, ring.fixed_full);
			copy_tile<D>(ring.v(), b.v, p.head, p.tile, ring.fixed_full);
			ring.copy_queries(b, p.head, first);
		}
	}
#endif
}
/* f(D) as a value of a type, if heads of that width are made */
template <class F> static bool with_planes(size_t D, F f)
{
	switch (D) {
	case 16:  f(Constant<16>()); return true;
	case 32:  f(Constant<32>()); return true;
	case 64:  f(Constant<64>()); return true;
	case 80:  f(Constant<80>()); return true;
	case 128: f(Constant<128>()); return true;
	}
	return false;
}

extern "C" bool cuda_planes_take(const Attention *a, const AttentionGradient *)
{
	return a->q.x.type == FP32 && with_planes(a->D, [](auto) { })
		&& hopper_here();
}
static bool moves(Heads x, size_t N)
{
	return packs(x.x, N) && x.batch % N == 0 && x.row % N == 0
		&& x.head % N == 0;
}
/* parts of scratch memory, which start at multiples of 256 bytes; at NULL they
 * are counted only */
struct Parts {
	char *at;
	size_t nbytes;

	void *take(size_t n)
	{
		void *part = at == NULL ? NULL : at + nbytes;
		nbytes += (n + 255) / 256 * 256;
		return part;
	}
	Tiles take_tiles(size_t heads, size_t n, size_t D)
	{
		Tiles t = { NULL, NULL, (int)blocks_for(n, ROWS) };
		t.at = (char *)take(heads * t.count * ROWS * D * 2 * sizeof(fp16));
		t.units = (float *)take(heads * t.count * sizeof(float));
		return t;
	}
};
/* gives f its parts of scratch memory; their bytes */
static size_t place(Forward &f, void *scratch)
{
	const Attention &a = f.a;
	const size_t heads = a.B * a.H;
	Parts parts = { (char *)scratch, 0 };
	f.q = parts.take_tiles(heads, a.queries, a.D);
	f.k = parts.take_tiles(heads, a.keys, a.D);
	f.v = parts.take_tiles(heads, a.keys, a.D);
	return parts.nbytes;
}
static size_t place(Backward &b, void *scratch)
{
	const Attention &a = b.a;
	const size_t heads = a.B * a.H;
	Parts parts = { (char *)scratch, 0 };
	b.q = parts.take_tiles(heads, a.queries, a.D);
	b.k = parts.take_tiles(heads, a.keys, a.D);
	b.v = parts.take_tiles(heads, a.keys, a.D);
	b.d_o = parts.take_tiles(heads, a.queries, a.D);
	const size_t padded = heads * b.q.count * ROWS;
	b.L = (float *)parts.take(padded * sizeof(float));
	b.deltas = (float *)parts.take(padded * sizeof(float));
	return parts.nbytes;
}
/* splits the arrays given, all at once */
struct Splitter {
	Splits all;
	int count, most;                /* arrays; tiles of a head */

	void add(Heads x, size_t n, Tiles to)
	{
		assert(count < MOST_SPLITS);
		all.at[count++] = { x, (int)n, moves(x, 4), to };
		most = to.count > most ? to.count : most;
	}
	template <int D> void run()
	{
		const dim3 grid(blocks_for(all.heads * most, 1), count);
		split_tiles<D><<<grid, SPLITTERS, 0, cuda_stream()>>>(all);
		LAUNCHED();
	}
};
/* a block for each tile of each head */
template <class Kernel, class Given>
static void launch(Kernel kernel, size_t tiles, int nbytes, const Given &given)
{
	CUDA(cudaFuncSetAttribute(kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, nbytes));
	kernel<<<blocks_for(tiles, 1), THREADS, nbytes, cuda_stream()>>>(given);
	LAUNCHED();
}

static void check(const Attention &a)
{
	assert(a.keys > 0 && a.queries > 0 && a.scale > 0);
	assert(a.keys < INT32_MAX - ROWS && a.queries < INT32_MAX - ROWS);
}
extern "C" void cuda_planes_forward(Attention a)
{
	const size_t heads = a.B * a.H;
	Forward f = { a, {}, {}, {}, moves(a.o, 2) };
	check(a);
	void *scratch = cuda_scratch(place(f, NULL), "attention's planes");
	place(f, scratch);
	Splitter splitter = { { {}, heads, a.H }, 0, 0 };
	splitter.add(a.q, a.queries, f.q);
	splitter.add(a.k, a.keys, f.k);
	splitter.add(a.v, a.keys, f.v);
	const bool done = with_planes(a.D, [&](auto D) {
		constexpr int width = decltype(D)::value;
		splitter.run<width>();
		launch(attend_planes<width>, heads * f.q.count,
			KeyRing<width, 1>::NBYTES, f);
	});
	cuda_release(scratch);
	assert(done && "cuda_planes_take was asked");
}
extern "C" size_t cuda_planes_scratch(const Attention *a)
{
	Backward b = {};
	b.a = *a;
	return place(b, NULL);
}

extern "C" void cuda_planes_backward(Attention a, AttentionGradient g)
{
	const size_t heads = a.B * a.H;
	Backward b = { a, g, {}, {}, {}, {}, NULL, NULL,
		moves(g.q, 2) && moves(g.k, 2) && moves(g.v, 2),
		moves(a.o, 4) && moves(g.o, 4) };
	check(a);
	void *scratch = cuda_scratch(place(b, NULL), "attention's planes");
	place(b, scratch);
	Splitter splitter = { { {}, heads, a.H }, 0, 0 };
	splitter.add(a.q, a.queries, b.q);
	splitter.add(a.k, a.keys, b.k);
	splitter.add(a.v, a.keys, b.v);
	splitter.add(g.o, a.queries, b.d_o);
	const size_t rows = heads * b.q.count * ROWS;
	find_deltas<<<blocks_for(rows, FINDERS / TEAM), FINDERS, 0,
		cuda_stream()>>>(b);
	LAUNCHED();
	const bool done = with_planes(a.D, [&](auto D) {
		constexpr int width = decltype(D)::value;
		splitter.run<width>();
		launch(planes_queries<width>, heads * b.q.count,
			KeyRing<width, 2>::NBYTES, b);
		launch(planes_keys<width>, heads * b.k.count,
			QueryRing<width>::NBYTES, b);
	});
	cuda_release(scratch);
	assert(done && "cuda_planes_take was asked");
}
