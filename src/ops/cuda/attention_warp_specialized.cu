/* attention_warp_specialized.cu: attention's forward pass for Hopper: one
 * thread moves tiles by tensor map, warpgroups multiply them, and blocks of
 * threads are persistent (many tiles of queries each) */
#include <math.h>

#include "ops/cuda/hopper.h"
#include "ops/cuda/warp_specialized_forward.cuh"

// consume tiles
/* a thread's registers: scores, then exponentials (64 x N), O (64 x D), and the
 * exponentials of the tile before as operand A */
template <class C> struct ForwardRegisters {
	float s[C::N / 2], o[C::D / 2];
	unsigned p[C::N / 4];
	RowState rows;
	/* must O be rescaled? is P V under way? */
	bool must_rescale, pv_in_flight;
};

/* one lane of each warp arrives when its warp has read a tile of keys */
__device__ __forceinline__ void release(Barrier *empty)
{
	if (threadIdx.x % 32 == 0)
		barrier_arrive(empty);
}

template <class C> struct Consumer {
	const ForwardShared<C> &shared;
	const ForwardArguments &p;
	const int group;                /* 0 ... GROUPS - 1 */
	int row;                        /* the upper one of this thread's two rows */
	RingPosition<C::Q_STAGES> q;
	RingPosition<C::STAGES> k, v;
	/* SPLIT: where the next query tile's keys begin */
	RingPosition<C::STAGES> start;
	RingPosition<1> acc;
	/* buffer whose O this thread is storing; or -1 */
	int stored;

	// wait for a tile of keys
	/* waits until a tile of K or V is there; where another warpgroup may have had the
	 * slot, first until it has read the tile before, since parity could mistake the
	 * round before that for this one */
	__device__ __forceinline__ void wait_full(Barrier *full, Barrier *empty,
		const RingPosition<C::STAGES> &at) const
	{
		if (C::SCHEDULE == SPLIT)
			barrier_wait(empty + at.at, at.parity ^ 1);
		barrier_wait(full + at.at, at.parity);
	}
	// start the matmuls of a tile
	/* masks the keys of tile j that this thread's rows do not see; last[low]: the
	 * last key that a row sees, counted from the thread's first column */
	__device__ __forceinline__ void apply_mask_in(float (&s)[C::N / 2], int j) const
	{
		const int column = j * C::N + threadIdx.x % 4 * 2, end = p.seqlen_k - 1;
		const int seen = row + p.diagonal;
		const int last[2] = { (p.causal ? min(seen, end) : end) - column,
			(p.causal ? min(seen + 8, end) : end) - column };
		apply_mask(s, last);
	}
	__device__ __forceinline__ void start_scores(float (&s)[C::N / 2])
	{
		matmul_nt<typename C::T, C::D, C::N, 64>(s,
			shared.queries(q.at, group), shared.k + k.at * C::K_NBYTES);
		wgmma_commit();
	}

	__device__ __forceinline__ void start_outputs(ForwardRegisters<C> &x)
	{
		matmul_add<typename C::T, C::D, C::N>(x.o, x.p,
			shared.v + v.at * C::K_NBYTES);
		wgmma_commit();
	}
	// step through tiles of keys
	/* computes S and P of the first tile of keys, j; clear: all its keys are seen */
	__device__ __forceinline__ void first_step(ForwardRegisters<C> &x, int j,
		bool clear)
	{
		wait_full(shared.k_full, shared.k_empty, k);        /* K is there */
		pin(x.s);
		wgmma_fence();
		start_scores(x.s);
		release_stored();
		wgmma_wait<0>();
		pin(x.s);
		release(shared.k_empty + k.at);
		k.template step<C::STRIDE>();
		if (!clear)
			apply_mask_in(x.s, j);
		update_row_max(x.s, x.rows, p.base2);     /* there is no O yet */
		exp_scores(x.s, x.rows, p.base2);
		pin(x.s);
	}
	/* waits until no matmul reads the last P, and rounds the exponentials in S to P,
	 * so that new scores may overwrite S */
	__device__ __forceinline__ void round_probabilities(ForwardRegisters<C> &x)
	{
		wgmma_wait<0>();
		pin(x.s);
		pin(x.p);
		pin(x.o);
		if (x.pv_in_flight) {
			release(shared.v_empty + v.at);
			v.template step<C::STRIDE>();
		}
		narrow<typename C::T>(x.p, x.s);
		if (x.must_rescale)
			rescale_accumulators(x.o, x.rows);
	}

	// step to the next tile of keys
	/* P of the tile before; S of tile j, and beside it O += P V; S becomes P.
	 * P V is awaited at the start of the next step */
	template <bool MASKED>
	__device__ __forceinline__ void step(ForwardRegisters<C> &x, int j)
	{
		round_probabilities(x);
		wait_full(shared.k_full, shared.k_empty, k);        /* K of j is there */
		if (C::SCHEDULE == PINGPONG)    /* the group before has begun its own */
			named_barrier_sync(1 + group, 2 * WARPGROUP);
		pin(x.s);
		pin(x.p);
		pin(x.o);
		wgmma_fence();
		start_scores(x.s);
		wait_full(shared.v_full, shared.v_empty, v);        /* V of the tile before */
		wgmma_fence();
		start_outputs(x);
		if (C::SCHEDULE == PINGPONG) /* and now the next one may */
			named_barrier_arrive(1 + (group + 1) % C::GROUPS, 2 * WARPGROUP);
		wgmma_wait<1>();
		pin(x.s);
		release(shared.k_empty + k.at);
		k.template step<C::STRIDE>();
		if (MASKED)
			apply_mask_in(x.s, j);
		x.must_rescale = update_row_max(x.s, x.rows, p.base2);
		exp_scores(x.s, x.rows, p.base2);
		x.pv_in_flight = true;
		pin(x.s);
	}
	// step out of the last tile of keys
	__device__ __forceinline__ void last_step(ForwardRegisters<C> &x)
	{
		round_probabilities(x);
		/* V of the last is there */
		wait_full(shared.v_full, shared.v_empty, v);
		pin(x.p);
		pin(x.o);
		wgmma_fence();
		start_outputs(x);
		wgmma_wait<0>();
		pin(x.o);
		release(shared.v_empty + v.at);
		v.template step<C::STRIDE>();
	}
	// join the accumulators of warpgroups
	/* sets the rings to this warpgroup's first tile of keys, and returns its number
	 * among the query tile's, counted from the last */
	__device__ __forceinline__ int first_tile_of_group(int key_tiles)
	{
		k = start;
		k.skip(group);
		v = k;
		start.skip(key_tiles);
		return group;
	}
	/* adds another warpgroup's O and sums, stored at `from`, to x */
	__device__ __forceinline__ void add_accumulators(ForwardRegisters<C> &x,
		unsigned from) const
	{
		float other[4], keep[2], add[2];
		with_accumulators<4>(from + C::D / 2 * 4 * WARPGROUP, [&](int i, float y) {
			other[i] = y;
		});
		#pragma unroll
		for (int low = 0; low < 2; low++) {
			const float row_max = fmaxf(x.rows.row_max[low], other[low]);
			keep[low] = exp2_approx(x.rows.row_max[low] - row_max);
			add[low] = exp2_approx(other[low] - row_max);
			x.rows.row_max[low] = row_max;
			x.rows.sum[low] = x.rows.sum[low] * keep[low]
				+ other[2 + low] * add[low];
		}
		with_accumulators<C::D / 2>(from, [&](int i, float y) {
			x.o[i] = x.o[i] * keep[i / 2 % 2] + y * add[i / 2 % 2];
		});
	}
	/* adds up the warpgroups' accumulators in the first one, for which it is true */
	__device__ __forceinline__ bool merge_split_keys(ForwardRegisters<C> &x)
	{
		const int own_slot = group - 1;
		const float rows[4] = { x.rows.row_max[0], x.rows.row_max[1], x.rows.sum[0],
			x.rows.sum[1] };
		if (group > 0) {
			const unsigned to = shared.acc + own_slot * C::ACC_NBYTES;
			barrier_wait(shared.acc_empty + own_slot, acc.parity ^ 1);
			store_accumulators(to, x.o);
			store_accumulators(to + C::D / 2 * 4 * WARPGROUP, rows);
			barrier_arrive(shared.acc_full + own_slot);
		}
		for (int other = 0; group == 0 && other < C::GROUPS - 1; other++) {
			barrier_wait(shared.acc_full + other, acc.parity);
			add_accumulators(x, shared.acc + other * C::ACC_NBYTES);
			barrier_arrive(shared.acc_empty + other);
		}
		acc.step();
		return group == 0;
	}
	// write O and L of a warpgroup
	/* stores L, and divides O by the sums */
	__device__ __forceinline__ void finish_rows(ForwardRegisters<C> &x, int head)
		const
	{
		#pragma unroll
		for (int low = 0; low < 2; low++) {
			const float sum = quad_sum(x.rows.sum[low]);
			const int i = row + 8 * low;
			if (threadIdx.x % 4 == 0 && i < p.seqlen_q)
				p.L[(size_t)head * p.seqlen_q + i] =
					(x.rows.row_max[low] + log2f(sum)) * LN_2;
			x.rows.rescale[low] = inverse_sum(sum);
		}
		rescale_accumulators(x.o, x.rows);
	}
	/* stores O, rounded, from query `first` of the head on */
	__device__ __forceinline__ void write(ForwardRegisters<C> &x,
		const CUtensorMap *map,
		int first, int head)
	{
		using W = typename C::W;
		const unsigned tile = shared.queries(q.at, group);
		const int lane = threadIdx.x % 32,
			r = threadIdx.x % WARPGROUP / 32 * 16 + lane % 16;
		/* no warp's matmuls still read the queries */
		named_barrier_sync(8 + group, WARPGROUP);
		#pragma unroll
		for (int i = 0; i < C::D / 16; i++) {
			const int byte = i * 32 + lane / 16 * 16;
			const float *o = x.o + 8 * i;
			stmatrix(tile + byte / W::WIDTH * 64 * W::WIDTH
				+ W::at(r, byte % W::WIDTH),
				pack<typename C::T>(o[0], o[1]), pack<typename C::T>(o[2], o[3]),
				pack<typename C::T>(o[4], o[5]), pack<typename C::T>(o[6], o[7]));
		}
		fence_proxy_async();
		/* all rows are written, and TMA sees them */
		named_barrier_sync(8 + group, WARPGROUP);
		// have one thread store the tile
		if (threadIdx.x % WARPGROUP == 0) {
			const int b = head / p.H, h = head - b * p.H;
			#pragma unroll
			for (int i = 0; i < W::BLOCKS; i++)
				if (first < p.seqlen_q)
					tma_store(map, tile + i * 64 * W::WIDTH, i * W::WIDTH / 2, first, h,
						b);
			tma_store_commit();
			stored = q.at;
		}
	}
	// write O and L of a warpgroup
	/* waits until what this thread stored of O has been read, and arrives at its
	 * buffer's barrier */
	__device__ __forceinline__ void release_stored()
	{
		if (stored < 0)
			return;
		tma_store_wait_read<0>();
		barrier_arrive(shared.q_empty + stored);
		stored = -1;
	}
	// compute attention of one tile of queries
	__device__ __forceinline__ void attention_tile(const QueryTile &query_tile,
		const CUtensorMap *map)
	{
		const int first = query_tile.first + 64 * (group % C::Q_TILES);
		/* tiles all of whose keys are seen by all of the warpgroup's rows */
		const int clear = (p.causal ? max(0, min(p.seqlen_k, first + 1
			+ p.diagonal)) : p.seqlen_k) / C::N;
		row = first + threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
		ForwardRegisters<C> x;
		x.rows = { { -FLT_MAX, -FLT_MAX }, { 0, 0 }, { 1, 1 }, { 0, 0 } };
		x.must_rescale = x.pv_in_flight = false;
		// begin with zeros
		#pragma unroll
		for (int i = 0; i < C::D / 2; i++)
			x.o[i] = 0;
		#pragma unroll
		for (int i = 0; i < C::N / 2; i++)
			x.s[i] = 0;
		#pragma unroll
		for (int i = 0; i < C::N / 4; i++)
			x.p[i] = 0;
		int j = query_tile.key_tiles - 1;
		if (C::SCHEDULE == SPLIT)
			j -= first_tile_of_group(query_tile.key_tiles);
		if (C::SCHEDULE != SPLIT || j >= 0) {
			first_step(x, j, j < clear);
			for (j -= C::STRIDE; j >= clear; j -= C::STRIDE)
				step<true>(x, j);
			for (; j >= 0; j -= C::STRIDE)
				step<false>(x, j);
			last_step(x);
		}
		if (C::SCHEDULE != SPLIT || merge_split_keys(x)) {
			finish_rows(x, query_tile.head);
			write(x, map, first, query_tile.head);
		}
		if (stored < 0)
			barrier_arrive(shared.q_empty + q.at);
		else if (C::Q_STAGES == 1)
			release_stored();
	}
	// compute attention of one tile of queries
	/* computes tiles of queries until there are no more */
	__device__ __forceinline__ void run(const CUtensorMap *map)
	{
		stored = -1;
		/* the first has the first turn */
		if (C::SCHEDULE == PINGPONG && group == 0)
			named_barrier_arrive(1, 2 * WARPGROUP);
		for (;;) {
			barrier_wait(shared.q_full + q.at, q.parity);   /* Q is there */
			const int tile = shared.tile[q.at];
			if (tile < 0)
				break;
			attention_tile(query_tile_of<C>(p, tile), map);
			q.step();
		}
		release_stored();
		if (C::SCHEDULE == PINGPONG && group == 0) /* takes the turn that is left */
			named_barrier_sync(1, 2 * WARPGROUP);
	}
};

// compute attention on Hopper
/* O = softmax(scale Q K^T) V and L, in tiles of M queries by N keys
 * FLOPs: 4 D for each pair of query and key; bytes: Q, O, L once; K, V once
 * from memory if sections of heads fit in the L2 cache, then from there for
 * each M queries; grid: persistent blocks; block: the producer's warpgroup,
 * consumers */
template <class C>
__global__ __launch_bounds__(C::THREADS, C::SHARERS)
void warp_specialized_forward(
	const __grid_constant__ ForwardMaps maps,
		const __grid_constant__ ForwardArguments p)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ char memory[];
	const ForwardShared<C> shared(memory);
	if (threadIdx.x == 0) {
		// make the barriers of the rings
		for (int i = 0; i < C::Q_STAGES; i++) {
			barrier_init(shared.q_full + i, 1);
			barrier_init(shared.q_empty + i, C::GROUPS * WARPGROUP);
		}
		for (int i = 0; i < C::STAGES; i++) {
			barrier_init(shared.k_full + i, 1);
			barrier_init(shared.k_empty + i, 4 * C::GROUPS / C::STRIDE);
			barrier_init(shared.v_full + i, 1);
			barrier_init(shared.v_empty + i, 4 * C::GROUPS / C::STRIDE);
		}
		for (int i = 0; i < C::STRIDE - 1; i++) {
			barrier_init(shared.acc_full + i, WARPGROUP);
			barrier_init(shared.acc_empty + i, WARPGROUP);
		}
		fence_barrier_init();
		prefetch_tensormap(&maps.q);
		prefetch_tensormap(&maps.k);
		prefetch_tensormap(&maps.v);
		prefetch_tensormap(&maps.o);
	}
	__syncthreads();        /* barriers are ready for all */
	const int group = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);
	if (group == 0) {
		setmaxnreg_dec<C::PRODUCER_REGISTERS>();
		if (threadIdx.x == 0)
			produce<C>(shared, maps, p);
	} else {
		setmaxnreg_inc<C::CONSUMER_REGISTERS>();
		Consumer<C> consumer = { shared, p, group - 1 };
		consumer.run(&maps.o);
	}
#endif
}

// choose tiles for queries and keys
/* a compiled tile configuration: its launcher, and data to estimate its time */
struct TileChoice {
	void (*launch)(Device *d, const Attention &a);
	QueryTiles tiles;
};

static double estimate(const Device *d, const TileChoice &c, const Attention &a)
{
	return tiling_time(&c.tiles, a.seqlen_q, a.seqlen_k, a.B * a.H, a.causal,
		mask_diagonal(&a), cuda_multiprocessors(d));
}

// launch one tile configuration
/* counters of tile schedulers, 0 before and after a launch; launches that run at
 * the same time have different ones */
enum { LAUNCHES = 1024 };
static __device__ unsigned tile_counter[LAUNCHES][2];

static void forget_counters(Device *, void *)
{
}

static unsigned *next_tile_counters(Device *d)
{
	unsigned *launches = (unsigned *)device_keep(d, sizeof *launches,
		forget_counters);
	void *all;
	cuda_stream(d);                 /* of this GPU */
	CUDA(cudaGetSymbolAddress(&all, tile_counter));
	return (unsigned *)all + (*launches)++ % LAUNCHES * 2;
}

template <class C> static void launch(Device *d, const Attention &a)
{
	assert(a.seqlen_k > 0 && a.scale > 0 && a.seqlen_q < 1 << 30
		&& a.seqlen_k < 1 << 30);
	const ForwardMaps maps = { tensor_map(a.q, &a, a.seqlen_q, 64),
		tensor_map(a.k, &a, a.seqlen_k, C::N),
		tensor_map(a.v, &a, a.seqlen_k, C::N),
		tensor_map(a.o, &a, a.seqlen_q, 64) };
	ForwardArguments p = {};
	p.seqlen_q = (int)a.seqlen_q;
	p.seqlen_k = (int)a.seqlen_k;
	p.H = (int)a.H;
	p.heads = (int)(a.B * a.H);
	p.query_tiles = (p.seqlen_q + C::M - 1) / C::M;
	p.together = !a.causal ? 1
		: heads_together(a.B * a.H, 4 * a.seqlen_k * a.D / a.group); /* K, V */
	p.tiles = p.heads * p.query_tiles;
	p.base2 = (float)a.scale * LOG2_E;
	p.causal = a.causal;
	p.group = (int)a.group;
	p.diagonal = mask_diagonal(&a);
	p.L = (float *)a.L.at;
	const int blocks = cuda_multiprocessors(d) * C::BLOCKS;
	if (p.tiles > blocks)
		p.tile_counter = next_tile_counters(d);
	CUDA(cudaFuncSetAttribute(warp_specialized_forward<C>,
		cudaFuncAttributeMaxDynamicSharedMemorySize, C::NBYTES));
	warp_specialized_forward<C><<<p.tiles < blocks ? p.tiles : blocks,
		C::THREADS, C::NBYTES, cuda_stream(d)>>>(maps, p);
	LAUNCHED();
}

// list the tile configurations by type and head size
template <class C> static constexpr TileChoice choice(float relative_cost)
{
	return { launch<C>, { C::M, C::N, C::BLOCKS, relative_cost } };
}

enum { MULTI_WARPGROUP, M64, SPLIT_KV, CHOICES };

/* the three configurations for heads of D elements; NULL: there are none */
template <class T> static const TileChoice *choices_for(size_t D)
{
	static const TileChoice d16[CHOICES] = {
			choice<TileConfig<T, 16, 3, 128, 3, PINGPONG>>(1),
			choice<TileConfig<T, 16, 1, 128, 3, INDEPENDENT, 2>>(1.17f),
			choice<TileConfig<T, 16, 2, 128, 4, SPLIT>>(1.37f) },
		d32[CHOICES] = { choice<TileConfig<T, 32, 4, 80, 4, INDEPENDENT>>(1),
			choice<TileConfig<T, 32, 1, 128, 3, INDEPENDENT, 2>>(1.15f),
			choice<TileConfig<T, 32, 2, 128, 4, SPLIT>>(1.37f) },
		d64[CHOICES] = { choice<TileConfig<T, 64, 3, 128, 3, PINGPONG>>(1),
			choice<TileConfig<T, 64, 1, 128, 2, INDEPENDENT, 2>>(1.16f),
			choice<TileConfig<T, 64, 2, 128, 4, SPLIT>>(1.41f) },
		d80[CHOICES] = { choice<TileConfig<T, 80, 2, 128, 2, PINGPONG>>(1),
			choice<TileConfig<T, 80, 1, 128, 2, INDEPENDENT>>(1.72f),
			choice<TileConfig<T, 80, 2, 128, 2, SPLIT>>(1.80f) },
		d128[CHOICES] = { choice<TileConfig<T, 128, 2, 128, 2, PINGPONG>>(1),
			choice<TileConfig<T, 128, 1, 128, 2, INDEPENDENT>>(1.37f),
			choice<TileConfig<T, 128, 2, 128, 2, SPLIT>>(1.45f) };
	return D == 16 ? d16 : D == 32 ? d32 : D == 64 ? d64 : D == 80 ? d80
		: D == 128 ? d128 : NULL;
}

static const TileChoice *choices_of(const Attention &a)
{
	return a.q.x.type == FP16 ? choices_for<fp16>(a.D)
		: a.q.x.type == BF16 ? choices_for<bf16>(a.D) : NULL;
}

// choose the tile configuration by the estimate, or as given
extern "C" void cuda_warp_specialized_forward(Device *d, Attention a)
{
	const TileChoice *c = choices_of(a), *best = c;
	assert(c && "hopper_supports was asked");
	for (int i = 1; i < CHOICES; i++)
		if (estimate(d, c[i], a) < estimate(d, *best, a))
			best = c + i;
	best->launch(d, a);
}

extern "C" void cuda_multi_warpgroup_forward(Device *d, Attention a)
{
	choices_of(a)[MULTI_WARPGROUP].launch(d, a);
}

extern "C" void cuda_m64_forward(Device *d, Attention a)
{
	choices_of(a)[M64].launch(d, a);
}

extern "C" void cuda_split_kv_forward(Device *d, Attention a)
{
	choices_of(a)[SPLIT_KV].launch(d, a);
}
