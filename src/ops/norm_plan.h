/* norm_plan.h: which of RMSNorm's kernels takes rows of a width, and how */
#ifndef OPS_NORM_PLAN_H
#define OPS_NORM_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "ops/types.h"

typedef struct NormPlan {
	NormVersion version;    /* never NORM_BY_WIDTH */
	int pack;               /* elements that move at once */
	int per;                /* packs that a thread holds; 0: none, two reads */
	unsigned threads;       /* of a row, whole warps; 0: there is no plan */
	unsigned rows;          /* of a block, at once */
	int ahead;              /* rows on their way while one is summed, at most */
} NormPlan;

// hold a row with as few packs a thread as allowed
/* threads for so many packs, one each, in whole warps */
static inline unsigned norm_threads(size_t packs, unsigned most)
{
	return packs >= most ? most : (unsigned)(packs + 31) / 32 * 32;
}

/* how many packs a thread may hold; ends with 0 */
static inline const int *norm_choices(bool backward, int pack)
{
	static const int forward[] = { 1, 4, 8, 0 }, wide[] = { 1, 2, 4, 0 };
	static const int gradients[] = { 1, 2, 0 }, widest[] = { 1, 0 },
		narrow[] = { 1, 4, 0 };
	if (backward)
		return pack == 1 ? narrow : pack == 4 ? gradients : widest;
	return pack == 8 ? wide : forward;
}

/* fills in per and threads, if a row fits in `most` threads of which each holds
 * at least `least` packs */
static inline void norm_hold(NormPlan *p, bool backward, size_t packs,
	unsigned most, int least)
{
	for (const int *per = norm_choices(backward, p->pack); *per; per++) {
		const size_t threads = (packs + *per - 1) / *per;
		const unsigned fit = *per * p->pack > 16 && most > 512 ? 512 : most;
		if (threads > fit || (*per < least && packs > 32))
			continue;
		p->per = *per;
		p->threads = norm_threads(threads, fit);
		return;
	}
}

static inline NormVersion norm_version_for(bool backward, size_t packs, int pack)
{
	const size_t elements = packs * pack;
	if (packs <= 32 || (!backward && elements <= (pack == 1 ? 256 : 512)))
		return NORM_WARP;
	if (backward && pack > 1 && packs <= 256)
		return NORM_PACKS;
	if (backward)
		return packs <= (pack == 1 ? 4096 : pack == 4 ? 2048 : 1024) ? NORM_AHEAD
			: NORM_LOOPED;
	return elements <= (pack == 1 ? 8192 : pack == 4 ? 16384 : 8184) ? NORM_PACKS
		: NORM_LOOPED;
}

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
	NormPlan p = { version, N, 0, 0, 1, 0 };
	switch (version) {
	case NORM_TWO_READS:
	case NORM_LOOPED:
		p.threads = norm_threads(packs, 512);
		break;
	case NORM_WARP:
		norm_hold(&p, backward, packs, 32, 1);
		p.rows = backward ? 1 : 4;
		break;
	default:
		norm_hold(&p, backward, packs, 1024,
			version == NORM_PACKS && !backward ? (N == 8 ? 2 : 4) : 1);
	}
	if (backward && (version == NORM_AHEAD || version == NORM_WARP))
		p.ahead = 4;
	if (!backward && version == NORM_AHEAD)
		p.threads = 0;
	return p;
}

#endif
