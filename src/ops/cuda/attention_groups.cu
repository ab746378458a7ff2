/* attention_groups.cu: dK and dV of heads that several heads of Q share */
#include "ops/cuda/common.cuh"
#include "ops/cuda/cuda.h"

enum { EACH = 8, THREADS = 256 };       /* EACH: elements of a thread */

// add the gradients of a group
/* to (B, n, H / group, D) = sums over groups of `from` (B, H, n, D), of as many
 * packs of EACH elements; W: elements that are stored at once
 * bytes: (1 + 1 / group) B H n D sizeof(T) */
template <class T, int W>
__global__ void sum_over_groups(Heads to, const T *from, size_t packs, size_t n,
	size_t H, size_t group, size_t D)
{
	const size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x,
		at = i * EACH % D, row = i * EACH / D % n, shared = i * EACH / D / n,
		batch = shared / (H / group), head = shared % (H / group);
	float sum[EACH] = {}, x[EACH];
	if (i >= packs)
		return;
	for (size_t own = shared * group; own < (shared + 1) * group; own++) {
		load(x, from + (own * n + row) * D + at);
		#pragma unroll
		for (int e = 0; e < EACH; e++)
			sum[e] += x[e];
	}
	store_by<W>((T *)to.x.at + batch * to.batch + head * to.head + row * to.row
		+ at, sum);
}

static void add_groups(Device *d, const Attention &a, Heads to, const void *from)
{
	const bool wide = packs(to.x, EACH) && to.batch % EACH == 0
		&& to.row % EACH == 0 && to.head % EACH == 0;
	const size_t n = a.total_k ? a.total_k : a.seqlen_k,
		B = a.total_k ? 1 : a.B, packs = B * a.H / a.group * n * a.D / EACH;
	with_type(to.x.type, [&](auto stored) {
		using T = decltype(stored);
		const auto kernel = wide ? sum_over_groups<T, EACH>
			: sum_over_groups<T, 1>;
		kernel<<<blocks_for(packs, THREADS), THREADS, 0, cuda_stream(d)>>>(to,
			(const T *)from, packs, n, a.H, a.group, a.D);
	});
	LAUNCHED();
}

// give each head of Q its own dK and dV
/* bytes of dK, or dV, of each head of Q, a multiple of 256 */
static size_t own_nbytes(const Attention &a)
{
	const size_t n = a.H * (a.total_k ? a.total_k : a.B * a.seqlen_k) * a.D;
	return (n * type_size(a.k.x.type) + 255) / 256 * 256;
}

extern "C" size_t cuda_group_scratch(const Attention *a,
	const AttentionGradient *g)
{
	return g && a->group > 1 ? 2 * own_nbytes(*a) : 0;
}

static Heads own_heads(const Attention &a, void *at, Type type)
{
	const size_t n = a.total_k ? a.total_k : a.seqlen_k;
	return { { at, type }, a.H * n * a.D, a.D, n * a.D };
}

extern "C" void cuda_sum_over_groups(Device *d, Attention a, AttentionGradient g,
	void (*backward)(Device *d, Attention a, AttentionGradient g))
{
	if (a.group == 1) {
		backward(d, a, g);
		return;
	}
	assert(a.D % EACH == 0 && a.H % a.group == 0);
	char *own = (char *)cuda_scratch(d, cuda_group_scratch(&a, &g),
		"attention's shared gradients");
	AttentionGradient each = g;
	each.dk = own_heads(a, own, g.dk.x.type);
	each.dv = own_heads(a, own + own_nbytes(a), g.dv.x.type);
	backward(d, a, each);
	add_groups(d, a, g.dk, each.dk.x.at);
	add_groups(d, a, g.dv, each.dv.x.at);
	device_free(d, own);
}
