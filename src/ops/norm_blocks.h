/* norm_blocks.h: how many rows a norm's ring holds, and how many blocks share a
 * multiprocessor */
#ifndef OPS_NORM_BLOCKS_H
#define OPS_NORM_BLOCKS_H

#include "ops/norm_plan.h"

/* rows of nbytes in the ring of a block that has room for so many bytes: of two
 * blocks' rings, if they take three rows each */
static inline int norm_slots(const NormPlan *p, size_t nbytes, size_t room)
{
	const size_t half = room / 2 / nbytes, fit = half >= 3 ? half : room / nbytes;
	return fit < (size_t)p->slots ? (int)fit : p->slots;
}

/* warps on a multiprocessor whose registers suffice, if a thread holds so many
 * elements of a row */
#define NORM_WARPS(elements) ((elements) > 16 ? 12 : (elements) > 8 ? 20 \
	: (elements) > 4 ? 24 : 40)

/* blocks on each of so many multiprocessors: two for a cluster; as many as
 * registers suffice for, where a warp holds a row; else rings of 128 KiB
 * together. And eight rows or more for each block. ring: bytes of a block's
 * rows */
static inline size_t norm_blocks(const NormPlan *p, size_t ring, size_t rows,
	size_t multiprocessors)
{
	enum { RINGS = 128 << 10 };
	const size_t eight = 8 * multiprocessors / p->blocks;
	const size_t most = p->blocks > 1 ? 2 : p->slots > 0
		? (RINGS + ring - 1) / ring : NORM_WARPS(p->per * p->pack) / p->rows,
		some = (rows + eight / 2) / eight;
	const size_t blocks = most < some ? most : some;
	return blocks > 0 ? blocks : 1;
}

#endif
