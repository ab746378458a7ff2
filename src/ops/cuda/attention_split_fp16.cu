/* attention_split_fp16.cu: attention of fp32 numbers, forward and backward, on
 * Hopper's tensor cores. Each number is split into two of fp16
 * (split_fp16.cuh), and each matmul is three.
 * 1. split_tiles: Q, K, V (and dO) become tiles of split fp16 in scratch
 *    memory, in the order in which wgmma reads them, so that one copy brings a
 *    part
 * 2. forward: split_fp16_forward; backward: split_fp16_delta, split_fp16_dq for
 *    dQ, split_fp16_dkv for dK and dV. No block waits for another, and all sums
 *    have one order: the same inputs give the same bits. */
#include "ops/cuda/hopper.h"
#include "ops/cuda/split_fp16_backward.cuh"
#include "ops/cuda/split_fp16_forward.cuh"

// launch attention in split fp16
extern "C" bool cuda_split_fp16_supports(Device *d, const Attention *a,
	const AttentionGradient *)
{
	return a->q.x.type == FP32 && with_width(a->D, [](auto) { })
		&& a->starts_q == NULL && !(a->causal && mask_diagonal(a))
		&& hopper_present(d);
}

static bool heads_movable(Heads x, size_t N)
{
	return packs(x.x, N) && x.batch % N == 0 && x.row % N == 0
		&& x.head % N == 0;
}

/* takes parts of scratch memory, which start at multiples of 256 bytes; at NULL:
 * only counts them */
struct ScratchParts {
	char *at;
	size_t nbytes;

	void *take(size_t n)
	{
		void *part = at == NULL ? NULL : at + nbytes;
		nbytes += (n + 255) / 256 * 256;
		return part;
	}
	SplitTiles take_tiles(size_t heads, size_t n, size_t D)
	{
		SplitTiles t = { NULL, NULL, (int)blocks_for(n, ROWS) };
		t.at = (char *)take(heads * t.count * ROWS * D * 2 * sizeof(fp16));
		t.units = (float *)take(heads * t.count * sizeof(float));
		return t;
	}
	/* takes tiles of Q, K and V; given: SplitForward or SplitBackward */
	template <class Given> void take_inputs(Given &given)
	{
		const Attention &a = given.a;
		const size_t heads = a.B * a.H;
		given.q = take_tiles(heads, a.seqlen_q, a.D);
		given.k = take_tiles(heads, a.seqlen_k, a.D);
		given.v = take_tiles(heads, a.seqlen_k, a.D);
	}
};

/* gives f its parts of scratch memory; returns their bytes */
static size_t take_scratch(SplitForward &f, void *scratch)
{
	ScratchParts parts = { (char *)scratch, 0 };
	parts.take_inputs(f);
	return parts.nbytes;
}

static size_t take_scratch(SplitBackward &b, void *scratch)
{
	const size_t heads = b.a.B * b.a.H;
	ScratchParts parts = { (char *)scratch, 0 };
	parts.take_inputs(b);
	b.d_o = parts.take_tiles(heads, b.a.seqlen_q, b.a.D);
	const size_t padded = heads * b.q.count * ROWS;
	b.L = (float *)parts.take(padded * sizeof(float));
	b.deltas = (float *)parts.take(padded * sizeof(float));
	return parts.nbytes;
}

/* gathers arrays, and splits them in one launch */
struct Splitter {
	SplitInputs all;
	void *scratch;                  /* memory of the tiles; the caller frees it */
	int count, most;                /* arrays; most tiles that a head has */

	void add(Heads x, size_t n, SplitTiles to, size_t group = 1)
	{
		assert(count < MOST_SPLITS);
		all.at[count++] = { x, (int)n, (int)group, heads_movable(x, 4), to };
		most = to.count > most ? to.count : most;
	}
	template <int D> void run(Device *d)
	{
		const dim3 grid(blocks_for(all.heads * most, 1), count);
		split_tiles<D><<<grid, SPLITTERS, 0, cuda_stream(d)>>>(all);
		LAUNCHED();
	}
};

/* launches a block for each tile of each head */
template <class Kernel, class Given>
static void launch(Device *d, Kernel kernel, size_t tiles, int nbytes,
	const Given &given)
{
	CUDA(cudaFuncSetAttribute(kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, nbytes));
	kernel<<<blocks_for(tiles, 1), THREADS, nbytes, cuda_stream(d)>>>(given);
	LAUNCHED();
}

static void check_sizes(const Attention &a)
{
	assert(a.seqlen_k > 0 && a.seqlen_q > 0 && a.scale > 0);
	assert(a.seqlen_k < INT32_MAX - ROWS && a.seqlen_q < INT32_MAX - ROWS);
}

/* gives `given` its scratch memory, and adds Q, K and V to what is split; given:
 * SplitForward or SplitBackward */
template <class Given> static Splitter splitter_of(Device *d, Given &given)
{
	const Attention &a = given.a;
	check_sizes(a);
	void *scratch = cuda_scratch(d, take_scratch(given, NULL),
		"attention's split fp16");
	take_scratch(given, scratch);
	Splitter splitter = { { {}, a.B * a.H, a.H }, scratch, 0, 0 };
	splitter.add(a.q, a.seqlen_q, given.q);
	splitter.add(a.k, a.seqlen_k, given.k, a.group);
	splitter.add(a.v, a.seqlen_k, given.v, a.group);
	return splitter;
}

extern "C" void cuda_split_fp16_forward(Device *d, Attention a)
{
	const size_t heads = a.B * a.H;
	SplitForward f = { a, {}, {}, {}, heads_movable(a.o, 2) };
	Splitter splitter = splitter_of(d, f);
	const bool done = with_width(a.D, [&](auto D) {
		constexpr int width = decltype(D)::value;
		splitter.run<width>(d);
		launch(d, split_fp16_forward<width>, heads * f.q.count,
			KeyRing<width, 1>::NBYTES, f);
	});
	device_free(d, splitter.scratch);
	assert(done && "cuda_split_fp16_supports was asked");
}

extern "C" size_t cuda_split_fp16_scratch(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	SplitForward f = {};
	SplitBackward b = {};
	f.a = b.a = *a;
	return g ? take_scratch(b, NULL) : take_scratch(f, NULL);
}

extern "C" void cuda_split_fp16_backward(Device *d, Attention a,
	AttentionGradient g)
{
	const size_t heads = a.B * a.H;
	SplitBackward b = { a, g, {}, {}, {}, {}, NULL, NULL,
		heads_movable(g.dq, 2) && heads_movable(g.dk, 2)
			&& heads_movable(g.dv, 2),
		heads_movable(a.o, 4) && heads_movable(g.d_o, 4) };
	// split what the backward pass reads
	Splitter splitter = splitter_of(d, b);
	splitter.add(g.d_o, a.seqlen_q, b.d_o);
	const size_t rows = heads * b.q.count * ROWS;
	split_fp16_delta<<<blocks_for(rows, FINDERS / TEAM), FINDERS, 0,
		cuda_stream(d)>>>(b);
	LAUNCHED();
	const bool done = with_width(a.D, [&](auto D) {
		constexpr int width = decltype(D)::value;
		splitter.run<width>(d);
		launch(d, split_fp16_dq<width>, heads * b.q.count,
			KeyRing<width, 2>::NBYTES, b);
		launch(d, split_fp16_dkv<width>, heads * b.k.count,
			QueryRing<width>::NBYTES, b);
	});
	device_free(d, splitter.scratch);
	assert(done && "cuda_split_fp16_supports was asked");
}
