#include "dist/ring.h"

#include <stdbool.h>
#include <string.h>

enum { BLOCK = 1024, PIECE = 1 << 18 };

typedef struct Shard {
	char *at;
	size_t n, nbytes;
} Shard;

static Shard shard_of(void *x, size_t n, Type type, int r, int ranks)
{
	size_t begin = shard_begin(n, r, ranks),
		count = shard_begin(n, r + 1, ranks) - begin;
	return (Shard){ (char *)x + begin * type_size(type), count,
		count * type_size(type) };
}

size_t ring_scratch(size_t n, int ranks)
{
	return n / ranks + 1;
}

// add arrays
static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* a += b, both n elements of the type */
static void add_array(void *a, const void *b, size_t n, Type type)
{
	size_t size = type_size(type);
	if (size == sizeof(real)) {
		real *x = a;
		const real *y = b;
		for (size_t i = 0; i < n; i++)
			x[i] += y[i];
		return;
	}
	real p[BLOCK], q[BLOCK];
	for (size_t i = 0; i < n; i += BLOCK) {
		size_t m = least(BLOCK, n - i);
		unpack_array(type, p, (const char *)a + i * size, m);
		unpack_array(type, q, (const char *)b + i * size, m);
		for (size_t k = 0; k < m; k++)
			p[k] += q[k];
		pack_array(type, (char *)a + i * size, p, m);
	}
}

/* bytes of the piece that begins at byte `at` */
static size_t piece_nbytes(size_t nbytes, size_t at)
{
	return at < nbytes ? least(nbytes - at, PIECE) : 0;
}

/* sends `out` while what arrives from `from` is added to `in` */
static void exchange_and_add(Link *link, int to, Shard out, int from, Shard in,
	Type type, void *scratch)
{
	for (size_t at = 0; at < out.nbytes || at < in.nbytes; at += PIECE) {
		size_t come = piece_nbytes(in.nbytes, at);
		link->exchange(link, to, out.at + at, piece_nbytes(out.nbytes, at), from,
			scratch, come);
		add_array(in.at + at, scratch, come / type_size(type), type);
	}
}

// do collectives round the ring
static int wrap(int r, int ranks)
{
	return (r % ranks + ranks) % ranks;
}

void link_reduce_scatter(Link *link, void *x, size_t n, Type type,
	void *scratch)
{
	int N = link->ranks, r = link->rank;
	for (int s = 0; s < N - 1; s++) {
		Shard out = shard_of(x, n, type, wrap(r - s - 1, N), N),
			in = shard_of(x, n, type, wrap(r - s - 2, N), N);
		exchange_and_add(link, wrap(r + 1, N), out, wrap(r - 1, N), in, type,
			scratch);
	}
}

void link_all_gather(Link *link, void *x, size_t n, Type type)
{
	int N = link->ranks, r = link->rank;
	for (int s = 0; s < N - 1; s++) {
		Shard out = shard_of(x, n, type, wrap(r - s, N), N),
			in = shard_of(x, n, type, wrap(r - s - 1, N), N);
		link->exchange(link, wrap(r + 1, N), out.at, out.nbytes,
			wrap(r - 1, N), in.at, in.nbytes);
	}
}

void link_all_reduce(Link *link, void *x, size_t n, Type type, void *scratch)
{
	link_reduce_scatter(link, x, n, type, scratch);
	link_all_gather(link, x, n, type);
}

void alternate_ring_link(Link *link, void *x, size_t n, Type type,
	void *scratch)
{
	int N = link->ranks, r = link->rank;
	size_t nbytes = n * type_size(type);
	char *out = scratch, *in = out + nbytes;
	memcpy(out, x, nbytes);
	for (int s = 0; s < N - 1; s++) {
		link->exchange(link, wrap(r + 1, N), out, nbytes, wrap(r - 1, N), in,
			nbytes);
		add_array(x, in, n, type);
		char *swap = out;
		out = in, in = swap;
	}
}

// let owners of shards sum
/* own becomes the sum over all ranks: its own n elements, and those of the other
 * ranks in `parts`, one rank after the other, added in the order of ranks */
static void sum_parts(void *own, const char *parts, size_t n, Type type,
	int rank, int ranks)
{
	size_t size = type_size(type);
	real sum[BLOCK], next[BLOCK];
	for (size_t i = 0; i < n; i += BLOCK) {
		size_t m = least(BLOCK, n - i);
		char *to = (char *)own + i * size;
		for (int r = 0; r < ranks; r++) {
			const char *from = r == rank ? to
				: parts + ((r - (r > rank)) * n + i) * size;
			unpack_array(type, r == 0 ? sum : next, from, m);
			for (size_t k = 0; r > 0 && k < m; k++)
				sum[k] += next[k];
		}
		pack_array(type, to, sum, m);
	}
}

void owner_reduce_scatter(Link *link, void *x, size_t n, Type type,
	void *scratch)
{
	int N = link->ranks, r = link->rank;
	Shard own = shard_of(x, n, type, r, N);
	for (int s = 1; s < N; s++) {
		int to = wrap(r + s, N), from = wrap(r - s, N);
		Shard out = shard_of(x, n, type, to, N);
		link->exchange(link, to, out.at, out.nbytes, from,
			(char *)scratch + (from - (from > r)) * own.nbytes, own.nbytes);
	}
	sum_parts(own.at, scratch, own.n, type, r, N);
}

void owner_all_reduce(Link *link, void *x, size_t n, Type type,
	void *scratch)
{
	owner_reduce_scatter(link, x, n, type, scratch);
	link_all_gather(link, x, n, type);
}

// broadcast and gather bytes
void link_broadcast(Link *link, void *x, size_t nbytes, int root)
{
	int N = link->ranks, place = wrap(link->rank - root, N);
	int next = wrap(link->rank + 1, N), before = wrap(link->rank - 1, N);
	size_t end = N > 1 && nbytes > 0 ? nbytes + PIECE : 0;
	for (size_t at = 0; at < end; at += PIECE) {
		size_t in = place > 0 ? piece_nbytes(nbytes, at) : 0,
			out = at > 0 && place < N - 1 ? piece_nbytes(nbytes, at - PIECE) : 0;
		link->exchange(link, next, (char *)x + (out ? at - PIECE : 0), out,
			before, (char *)x + (in ? at : 0), in);
	}
}

void link_gather(Link *link, void *all, size_t nbytes)
{
	int N = link->ranks, r = link->rank;
	char *at = all;
	for (int s = 0; s < N - 1; s++)
		link->exchange(link, wrap(r + 1, N), at + wrap(r - s, N) * nbytes,
			nbytes, wrap(r - 1, N), at + wrap(r - s - 1, N) * nbytes, nbytes);
}
