/* ring.h: collectives over a link, on elements in the memory of the host: fp32,
 * bf16 in 16 bits each, or in the double build fp64. Shard r of n elements is
 * shard_begin(n, r, ranks) to shard_begin(n, r + 1, ranks); shards may be
 * empty */
#ifndef DIST_RING_H
#define DIST_RING_H

#include "base/number.h"
#include "dist/link.h"

// cut an array into shards
static inline size_t shard_begin(size_t n, int r, int ranks)
{
	return n / ranks * r + (n % ranks * r) / ranks;
}

// declare collectives over a link
/* x: n elements, summed over the ranks in place. Sums of bf16 are rounded at each
 * hop; scratch: room for ring_scratch(n, ranks) elements */
size_t ring_scratch(size_t n, int ranks);
void   link_all_reduce(Link *link, void *x, size_t n, Type type, void *scratch);
/* shard `rank` of x ends with the sum over the ranks, the other shards with
 * anything */
void   link_reduce_scatter(Link *link, void *x, size_t n, Type type,
	void *scratch);
/* x holds this rank's shard; the shards of the other ranks are filled in */
void   link_all_gather(Link *link, void *x, size_t n, Type type);
/* every rank sends its whole array round the ring, ranks - 1 times; scratch: 2 n
 * elements. Each rank sums in an order of its own */
void   alternate_ring_link(Link *link, void *x, size_t n, Type type,
	void *scratch);
/* each shard's owner receives it from all, and sums in fp32 in the order of
 * ranks: equal bits wherever an array is cut, one rounding. scratch: n + ranks */
void   owner_all_reduce(Link *link, void *x, size_t n, Type type,
	void *scratch);
void   owner_reduce_scatter(Link *link, void *x, size_t n, Type type,
	void *scratch);
void   link_broadcast(Link *link, void *x, size_t nbytes, int root);
/* all: nbytes for each rank, in the order of ranks; holds this rank's own, and
 * those of the other ranks are filled in */
void   link_gather(Link *link, void *all, size_t nbytes);

#endif
