/* attention_hopper.cu: attention's forward pass for Hopper: one thread moves
 * tiles by tensor map, warpgroups multiply them, and blocks of threads stay for
 * many tiles of queries */
#include <math.h>

#include "ops/cuda/hopper.h"
#include "ops/cuda/hopper_forward.cuh"

/* all in registers: scores and then weights S, P: 64 x N; O: 64 x D */
template <class C> struct Held {
	float s[C::N / 2], o[C::D / 2];
	unsigned p[C::N / 4];
	Rows rows;
	bool grown, under_way;          /* must O shrink? is P V under way? */
};

/* one lane of each warp says that its warp is through with a tile of keys */
__device__ __forceinline__ void release(Barrier *empty)
{
	if (threadIdx.x % 32 == 0)
		barrier_arrive(empty);
}

template <class C> struct Consumer {
	const Shared<C> &shared;
	const Problem &p;
	const int group;                /* 0 ... GROUPS - 1 */
	int row;                        /* of this thread: the upper of its two */
	Ring<C::Q_STAGES> q;
	Ring<C::STAGES> k, v;
	Ring<C::STAGES> start;          /* split: where the next item's tiles begin */
	Ring<1> sums;

	/* hides the keys of tile j that this thread's rows do not see; last: the last
	 * that each does, counted from the thread's first column */
	__device__ __forceinline__ void hide_in(float (&s)[C::N / 2], int j) const
	{
		const int column = j * C::N + threadIdx.x % 4 * 2, end = p.keys - 1;
		const int last[2] = { (p.causal ? min(row, end) : end) - column,
			(p.causal ? min(row + 8, end) : end) - column };
		hide(s, last);
	}

	__device__ __forceinline__ void start_scores(float (&s)[C::N / 2])
	{
		multiply_rows<typename C::T, C::D, C::N, 64>(s,
			shared.queries(q.at, group), shared.k + k.at * C::K_NBYTES);
		products_commit();
	}

	__device__ __forceinline__ void start_outputs(Held<C> &x)
	{
		add_product<typename C::T, C::D, C::N>(x.o, x.p,
			shared.v + v.at * C::K_NBYTES);
		products_commit();
	}
	/* the first tile of keys, j: S, and its weights */
	__device__ __forceinline__ void first_step(Held<C> &x, int j)
	{
		barrier_wait(shared.k_full + k.at, k.parity);   /* K is there */
		pin(x.s);
		products_fence();
		start_scores(x.s);
		products_await<0>();
		pin(x.s);
		release(shared.k_empty + k.at);
		k.template step<C::STRIDE>();
		hide_in(x.s, j);
		raise_base<true>(x.s, x.rows, p.base2);         /* there is no O yet */
		weigh<true>(x.s, x.rows, p.base2);
		pin(x.s);
	}

	/* P of the tile before S is overwritten, once no products read P */
	__device__ __forceinline__ void take_weights(Held<C> &x)
	{
		products_await<0>();
		pin(x.s);
		pin(x.p);
		pin(x.o);
		if (x.under_way) {
			release(shared.v_empty + v.at);
			v.template step<C::STRIDE>();
		}
		narrow<typename C::T>(x.p, x.s);
		if (x.grown)
			shrink_sums(x.o, x.rows);
	}

	/* P of the tile before; S of tile j, and beside it O += P V; S becomes weights.
	 * P V is awaited in the next step only: the loop's end keeps the compiler from
	 * doing so before the weights are there */
	template <bool MASKED>
	__device__ __forceinline__ void step(Held<C> &x, int j)
	{
		take_weights(x);
		barrier_wait(shared.k_full + k.at, k.parity);   /* K of j is there */
		if (C::TEAM == ORDERED)         /* the group before has begun its own */
			meet(1 + group, 2 * WARPGROUP);
		pin(x.s);
		pin(x.p);
		pin(x.o);
		products_fence();
		start_scores(x.s);
		barrier_wait(shared.v_full + v.at, v.parity);   /* V of the tile before */
		products_fence();
		start_outputs(x);
		if (C::TEAM == ORDERED) /* and now the next one may */
			meet_later(1 + (group + 1) % C::GROUPS, 2 * WARPGROUP);
		products_await<1>();
		pin(x.s);
		release(shared.k_empty + k.at);
		k.template step<C::STRIDE>();
		if (MASKED)
			hide_in(x.s, j);
		x.grown = raise_base<MASKED>(x.s, x.rows, p.base2);
		weigh<MASKED>(x.s, x.rows, p.base2);
		x.under_way = true;
		pin(x.s);
	}
	__device__ __forceinline__ void last_step(Held<C> &x)
	{
		take_weights(x);
		barrier_wait(shared.v_full + v.at, v.parity);   /* V of the last is there */
		pin(x.p);
		pin(x.o);
		products_fence();
		start_outputs(x);
		products_await<0>();
		pin(x.o);
		release(shared.v_empty + v.at);
		v.template step<C::STRIDE>();
	}
	/* the first tile of an item for this warpgroup, counted from the item's last */
	__device__ __forceinline__ int find_place(int key_tiles)
	{
		k = start;
		k.skip(group);
		v = k;
		start.skip(key_tiles);
		return group;
	}

	/* O and sums of the warpgroup behind these become part of x */
	__device__ __forceinline__ void add_sums(Held<C> &x, unsigned from) const
	{
		float other[4], keep[2], add[2];
		with_sums<4>(from + C::D / 2 * 4 * WARPGROUP, [&](int i, float y) {
			other[i] = y;
		});
		#pragma unroll
		for (int low = 0; low < 2; low++) {
			const float base = fmaxf(x.rows.base[low], other[low]);
			keep[low] = power2(x.rows.base[low] - base);
			add[low] = power2(other[low] - base);
			x.rows.base[low] = base;
			x.rows.sum[low] = x.rows.sum[low] * keep[low]
				+ other[2 + low] * add[low];
		}
		with_sums<C::D / 2>(from, [&](int i, float y) {
			x.o[i] = x.o[i] * keep[i / 2 % 2] + y * add[i / 2 % 2];
		});
	}

	/* true for the first warpgroup, whose sums are then those of all keys */
	__device__ __forceinline__ bool join(Held<C> &x)
	{
		const int mine = group - 1;
		const float rows[4] = { x.rows.base[0], x.rows.base[1], x.rows.sum[0],
			x.rows.sum[1] };
		if (group > 0) {
			const unsigned to = shared.sums + mine * C::SUMS_NBYTES;
			barrier_wait(shared.sums_empty + mine, sums.parity ^ 1);
			leave_sums(to, x.o);
			leave_sums(to + C::D / 2 * 4 * WARPGROUP, rows);
			barrier_arrive(shared.sums_full + mine);
		}
		for (int other = 0; group == 0 && other < C::GROUPS - 1; other++) {
			barrier_wait(shared.sums_full + other, sums.parity);
			add_sums(x, shared.sums + other * C::SUMS_NBYTES);
			barrier_arrive(shared.sums_empty + other);
		}
		sums.step();
		return group == 0;
	}
	/* L; O is divided by the sums */
	__device__ __forceinline__ void finish_rows(Held<C> &x, int head) const
	{
		#pragma unroll
		for (int low = 0; low < 2; low++) {
			const float sum = row_sum(x.rows.sum[low]);
			const int i = row + 8 * low;
			if (threadIdx.x % 4 == 0 && i < p.queries)
				p.L[(size_t)head * p.queries + i] =
					(x.rows.base[low] + log2f(sum)) * LN_2;
			x.rows.shrink[low] = 1 / sum;
		}
		shrink_sums(x.o, x.rows);
	}

	__device__ __forceinline__ void write(Held<C> &x, const CUtensorMap *map,
		int first, int head)
	{
		using W = typename C::W;
		const unsigned tile = shared.queries(q.at, group);
		const int lane = threadIdx.x % 32,
			r = threadIdx.x % WARPGROUP / 32 * 16 + lane % 16;
		/* no warp's products still read the queries */
		meet(8 + group, WARPGROUP);
		#pragma unroll
		for (int i = 0; i < C::D / 16; i++) {
			const int byte = i * 32 + lane / 16 * 16;
			const float *o = x.o + 8 * i;
			store_matrices(tile + byte / W::WIDTH * 64 * W::WIDTH
				+ W::at(r, byte % W::WIDTH),
				pack<typename C::T>(o[0], o[1]), pack<typename C::T>(o[2], o[3]),
				pack<typename C::T>(o[4], o[5]), pack<typename C::T>(o[6], o[7]));
		}
		show_writes();
		/* all rows are written, and the copy engine sees them */
		meet(8 + group, WARPGROUP);
		if (threadIdx.x % WARPGROUP == 0) {
			const int b = head / p.H, h = head - b * p.H;
			#pragma unroll
			for (int i = 0; i < W::BLOCKS; i++)
				if (first < p.queries)
					store_box(map, tile + i * 64 * W::WIDTH, i * W::WIDTH / 2, first, h,
						b);
			stores_commit();
			stores_await_read<0>();
		}
	}
	__device__ __forceinline__ void attend(const Item &item, const CUtensorMap *map)
	{
		const int first = item.first + 64 * (group % C::Q_TILES);
		/* tiles all of whose keys are seen by all of the warpgroup's rows */
		const int clear = (p.causal ? min(p.keys, first + 1) : p.keys) / C::N;
		row = first + threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
		Held<C> x;
		x.rows = { { -INFINITY, -INFINITY }, { 0, 0 }, { 1, 1 } };
		x.grown = x.under_way = false;
		#pragma unroll
		for (int i = 0; i < C::D / 2; i++)
			x.o[i] = 0;
		#pragma unroll
		for (int i = 0; i < C::N / 2; i++)
			x.s[i] = 0;
		#pragma unroll
		for (int i = 0; i < C::N / 4; i++)
			x.p[i] = 0;
		int j = item.key_tiles - 1;
		if (C::TEAM == SPLIT)
			j -= find_place(item.key_tiles);
		if (C::TEAM != SPLIT || j >= 0) {
			first_step(x, j);
			for (j -= C::STRIDE; j >= clear; j -= C::STRIDE)
				step<true>(x, j);
			for (; j >= 0; j -= C::STRIDE)
				step<false>(x, j);
			last_step(x);
		}
		if (C::TEAM != SPLIT || join(x)) {
			finish_rows(x, item.head);
			write(x, map, first, item.head);
		}
		barrier_arrive(shared.q_empty + q.at);
	}

	__device__ __forceinline__ void run(const CUtensorMap *map)
	{
		if (C::TEAM == ORDERED && group == 0)   /* the first has the first turn */
			meet_later(1, 2 * WARPGROUP);
		for (;;) {
			barrier_wait(shared.q_full + q.at, q.parity);   /* Q is there */
			const int tile = shared.tile[q.at];
			if (tile < 0)
				break;
			attend(item_of<C>(p, tile), map);
			q.step();
		}
		if (C::TEAM == ORDERED && group == 0)   /* takes the turn that is left */
			meet(1, 2 * WARPGROUP);
	}
};
/* O = softmax(scale Q K^T) V and L, in tiles of M queries by N keys
 * FLOPs: 4 D for each pair of query and key; bytes: Q, O, L once; K, V once from
 * memory if sections of heads fit in the L2 cache, then from there for each M
 * queries; grid: blocks that stay; block: the producer's warpgroup, consumers */
template <class C>
__global__ __launch_bounds__(C::THREADS, C::SHARERS) void attend_hopper(
	const __grid_constant__ Maps maps, const __grid_constant__ Problem p)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
	extern __shared__ char memory[];
	const Shared<C> shared(memory);
	if (threadIdx.x == 0) {
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
			barrier_init(shared.sums_full + i, WARPGROUP);
			barrier_init(shared.sums_empty + i, WARPGROUP);
		}
		barriers_ready();
		prefetch_map(&maps.q);
		prefetch_map(&maps.k);
		prefetch_map(&maps.v);
		prefetch_map(&maps.o);
	}
	__syncthreads();        /* barriers are ready for all */
	const int group = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);
	if (group == 0) {
		registers_down<C::FEW>();
		if (threadIdx.x == 0)
			produce<C>(shared, maps, p);
	} else {
		registers_up<C::MANY>();
		Consumer<C> consumer = { shared, p, group - 1 };
		consumer.run(&maps.o);
	}
#endif
}
struct Choice {
	void (*launch)(const Attention &a);
	int M, N, blocks;
	float pace;             /* time for a score, in that of the wide way */
};

/* time for the longer of: a multiprocessor's share, the longest tile */
static double estimate(const Choice &c, const Attention &a)
{
	double sum = 0, longest = 0;
	for (size_t first = 0; first < a.queries; first += c.M) {
		const size_t end = a.causal ? first + c.M : a.keys,
			keys = end < a.keys ? end : a.keys;
		longest = fmax(longest, (double)c.M * ((keys + c.N - 1) / c.N * c.N));
		sum += (double)c.M * ((keys + c.N - 1) / c.N * c.N);
	}
	return c.pace * fmax(sum * (a.B * a.H) / cuda_multiprocessors(),
		longest * c.blocks);
}

/* heads whose K and V stay in the L2 cache together, 32 MiB of its 50 */
static int heads_together(const Attention &a)
{
	const size_t fit = ((size_t)32 << 20) / (4 * a.keys * a.D),
		heads = a.B * a.H;
	return (int)(fit < 1 ? 1 : fit < heads ? fit : heads);
}

/* 0 before and after; of launches that run at a time, each has its own */
enum { LAUNCHES = 1024 };
static __device__ unsigned tickets[LAUNCHES][2];

static unsigned *next_tickets(void)
{
	static unsigned launches;
	void *all;
	CUDA(cudaGetSymbolAddress(&all, tickets));
	return (unsigned *)all + launches++ % LAUNCHES * 2;
}

template <class C> static void launch(const Attention &a)
{
	assert(a.keys > 0 && a.scale > 0 && a.queries < 1 << 30 && a.keys < 1 << 30);
	const Maps maps = { hopper_map(a.q, &a, a.queries, 64),
		hopper_map(a.k, &a, a.keys, C::N), hopper_map(a.v, &a, a.keys, C::N),
		hopper_map(a.o, &a, a.queries, 64) };
	Problem p = {};
	p.queries = (int)a.queries;
	p.keys = (int)a.keys;
	p.H = (int)a.H;
	p.heads = (int)(a.B * a.H);
	p.query_tiles = (p.queries + C::M - 1) / C::M;
	p.together = heads_together(a);
	p.tiles = p.heads * p.query_tiles;
	p.base2 = (float)a.scale * LOG2_E;
	p.causal = a.causal;
	p.L = (float *)a.L.at;
	const int blocks = cuda_multiprocessors() * C::BLOCKS;
	if (p.tiles > blocks)
		p.tickets = next_tickets();
	CUDA(cudaFuncSetAttribute(attend_hopper<C>,
		cudaFuncAttributeMaxDynamicSharedMemorySize, C::NBYTES));
	attend_hopper<C><<<p.tiles < blocks ? p.tiles : blocks, C::THREADS, C::NBYTES,
		cuda_stream()>>>(maps, p);
	LAUNCHED();
}
template <class C> static constexpr Choice choice(float pace)
{
	return { launch<C>, C::M, C::N, C::BLOCKS, pace };
}

enum { WIDE, NARROW, SPLIT_KEYS, CHOICES };

/* NULL: no heads of this size */
template <class T> static const Choice *choices_for(size_t D)
{
	static const Choice d16[CHOICES] = {
			choice<Way<T, 16, 3, 128, 3, ORDERED>>(1),
			choice<Way<T, 16, 1, 128, 3, FREE, 2>>(1.17f),
			choice<Way<T, 16, 2, 128, 4, SPLIT>>(1.37f) },
		d32[CHOICES] = { choice<Way<T, 32, 4, 80, 4, FREE>>(1),
			choice<Way<T, 32, 1, 128, 3, FREE, 2>>(1.15f),
			choice<Way<T, 32, 2, 128, 4, SPLIT>>(1.37f) },
		d64[CHOICES] = { choice<Way<T, 64, 3, 128, 3, ORDERED>>(1),
			choice<Way<T, 64, 1, 128, 2, FREE, 2>>(1.16f),
			choice<Way<T, 64, 2, 128, 4, SPLIT>>(1.41f) },
		d80[CHOICES] = { choice<Way<T, 80, 2, 128, 2, ORDERED>>(1),
			choice<Way<T, 80, 1, 128, 2, FREE>>(1.72f),
			choice<Way<T, 80, 2, 128, 2, SPLIT>>(1.80f) },
		d128[CHOICES] = { choice<Way<T, 128, 2, 128, 2, ORDERED>>(1),
			choice<Way<T, 128, 1, 128, 2, FREE>>(1.37f),
			choice<Way<T, 128, 2, 128, 2, SPLIT>>(1.45f) };
	return D == 16 ? d16 : D == 32 ? d32 : D == 64 ? d64 : D == 80 ? d80
		: D == 128 ? d128 : NULL;
}

static const Choice *choices_of(const Attention &a)
{
	return a.q.x.type == FP16 ? choices_for<fp16>(a.D)
		: a.q.x.type == BF16 ? choices_for<bf16>(a.D) : NULL;
}
extern "C" void cuda_hopper_forward(Attention a)
{
	const Choice *c = choices_of(a), *best = c;
	assert(c && "hopper_takes was asked");
	for (int i = 1; i < CHOICES; i++)
		if (estimate(c[i], a) < estimate(*best, a))
			best = c + i;
	best->launch(a);
}

extern "C" void cuda_wide_forward(Attention a)
{
	choices_of(a)[WIDE].launch(a);
}

extern "C" void cuda_narrow_forward(Attention a)
{
	choices_of(a)[NARROW].launch(a);
}

extern "C" void cuda_split_forward(Attention a)
{
	choices_of(a)[SPLIT_KEYS].launch(a);
}
