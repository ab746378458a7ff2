/* norm_plan.h: which of RMSNorm's kernels takes rows of a width, and how */
#ifndef OPS_NORM_PLAN_H
#define OPS_NORM_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "ops/types.h"

typedef struct NormPlan {
	NormVersion version;    /* never NORM_BY_WIDTH */
	int pack;               /* elements that move at once */
	int per;                /* packs that a thread has; 0: any, in two reads */
	unsigned threads;       /* of a block for a row, whole warps; 0: no plan */
	unsigned rows;          /* of a block, at once */
	unsigned blocks;        /* that share a row: 1, or a cluster of 2 to 16 */
	int slots;              /* rows that the ring of a block holds, at most; 0:
	                         * registers hold the row, or nothing does */
} NormPlan;

// hold a row with as few packs a thread as allowed
/* threads for so many packs, one each, in whole warps */
static inline unsigned norm_threads(size_t packs, unsigned most)
{
	return packs >= most ? most : (unsigned)(packs + 31) / 32 * 32;
}

/* fills in per and threads, if a row fits in the registers of `most` threads, of
 * which each holds at least `least` packs */
static inline void norm_hold(NormPlan *p, size_t packs, unsigned most, int least)
{
	static const int few[] = { 1, 4, 8, 0 }, wide[] = { 1, 2, 4, 0 };
	for (const int *per = p->pack == 8 ? wide : few; *per; per++) {
		const size_t threads = (packs + *per - 1) / *per;
		const unsigned fit = *per * p->pack > 16 && most > 512 ? 512 : most;
		if (threads > fit || (*per < least && packs > 32))
			continue;
		p->per = *per;
		p->threads = norm_threads(threads, fit);
		return;
	}
}

// share a row that comes through a ring
/* fills in per, blocks and threads for a row that comes through the rings of one
 * block or, if it is too wide for that, of a cluster; neither if it is too wide
 * for the largest cluster */
static inline void norm_share(NormPlan *p, size_t packs)
{
	enum { MOST = 512, CLUSTER = 16 };
	const size_t few = p->pack == 8 ? 96 : 512;
	const int first = p->pack == 1 ? 4 : 1, last = p->pack == 1 ? 8 : 4;
	p->per = packs <= first * few ? first
		: packs <= (size_t)2 * first * MOST ? 2 * first : last;
	while (packs > (size_t)p->blocks * p->per * MOST)
		p->blocks *= 2;
	if (p->blocks <= CLUSTER)
		p->threads = norm_threads((packs + p->blocks * p->per - 1)
			/ (p->blocks * p->per), MOST);
}

// choose a version by width
/* elements of a row that the rings of one block take */
static inline size_t norm_of_block(int pack)
{
	return pack == 1 ? 4096 : (size_t)2048 * pack;
}

static inline NormVersion norm_version_for(bool backward, size_t packs, int pack)
{
	const size_t elements = packs * pack, ring = norm_of_block(pack),
		held = pack == 1 ? 8192 : 16384;
	if (elements <= (pack == 1 ? 256u : backward ? 1024 : 512))
		return NORM_WARP;
	if (elements <= (backward ? ring : held))
		return backward ? NORM_AHEAD : NORM_PACKS;
	return pack > 1 && elements <= 16 * ring ? NORM_CLUSTER : NORM_LOOPED;
}

// plan the rows of a width
/* the plan for rows of C elements that move in packs of `pack`, 1, 4 or 8; for
 * NORM_BY_WIDTH there always is one */
static inline NormPlan norm_plan(NormVersion version, bool backward, size_t C,
	int pack)
{
	const bool scalar = version == NORM_TWO_READS || version == NORM_HELD;
	const int N = scalar ? 1 : pack;
	const size_t packs = (C + N - 1) / N;
	if (version == NORM_BY_WIDTH)
		version = norm_version_for(backward, packs, N);
	NormPlan p = { version, N, 0, 0, 1, 1, 0 };
	if (version == NORM_TWO_READS || version == NORM_LOOPED) {
		p.threads = norm_threads(packs, 512);
	} else if (version == NORM_CLUSTER || (backward && version != NORM_WARP)) {
		norm_share(&p, packs);
		p.slots = version == NORM_HELD || version == NORM_PACKS ? 2 : 4;
		if ((p.blocks > 1) != (version == NORM_CLUSTER))
			p.threads = 0;
	} else if (version != NORM_AHEAD) {
		norm_hold(&p, packs, version == NORM_WARP ? 32 : 1024,
			version == NORM_PACKS ? (N == 8 ? 2 : 4) : 1);
		p.rows = version == NORM_WARP ? 4 : 1;
	}
	return p;
}

#endif
