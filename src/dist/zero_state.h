/* zero_state.h: a sharded model as the parts of the module see it */
#ifndef DIST_ZERO_STATE_H
#define DIST_ZERO_STATE_H

#include "base/prefetch.h"
#include "dist/comm.h"
#include "model/shard_map.h"
#include "train/optimizer.h"

// declare the settings of ZeRO
typedef struct ZeroSettings {
	/* the sharded arrays. 1: masters and the optimizer's state; 2:
	 * gradients as well; 3: weights as well */
	int stage;
	/* stage 3: groups that are gathered before they are needed, 0 to
	 * MOST_PREFETCH; they take prefetch + 1 slots */
	int prefetch;
	/* most gradients that one collective moves, in 1e6 bytes on the wire,
	 * where it moves more than one unit; 0: each unit alone. Gathers move as
	 * many weights */
	double bucket_mb;
	Type wire;                       /* of gradients: FP32 or BF16 */
	/* ranks exchange unsummed gradients, and the update adds them. Only
	 * where comm_exchanges, and on the fused path. Each rank keeps the
	 * gradients of its shards from all ranks, so without `early` no stage
	 * has less than all gradients */
	bool exchange;
	/* stage 2: the backward pass updates a group as soon as its gradients are
	 * summed, and sends the weights back; then no stage keeps all gradients.
	 * Without clipping and for steps of one pass, by timed_step or
	 * replayed_step */
	bool early;
	/* fill freed slots with NaN (tests) */
	bool poison;
} ZeroSettings;
enum { MOST_PREFETCH = 4 };

// declare a sharded model
enum { GRADIENT_SLOTS = 2,
	NORM_ELEMENTS = 4 };             /* 16 bytes; the first counts */

// declare a group's arrays
typedef struct ZeroGroup {
	size_t n, shard;                 /* elements of the group; of a rank's part */
	Array weights, gradients, wire;  /* (n) */
	Array home;                      /* (n) gradients, when none accumulate */
	/* (shard) of this rank; low: what is gathered, or the master itself */
	Array master, low, sum;
	Event gathered;                  /* stages 1 and 2 */
	int spans;                       /* how many of the optimizer's spans */
	Event summed;
} ZeroGroup;

// declare a slot for weights
/* memory for the weights of the groups k, k + slots, ... */
typedef struct WeightSlot {
	void *at;
	Event ready;
} WeightSlot;

// declare the engine's state
typedef struct Zero {
	Model *m;
	Device *device;
	const Ops *ops;
	Comm *comm;
	ZeroSettings settings;
	ShardMap map;
	int rank;
	ZeroGroup *groups, gains;
	Array masters, lows, sums;       /* of all groups where they lie apart */
	Gradients parts;                 /* of exchanges: shards of all ranks */
	size_t summed;                   /* elements of sums, without gains */
	Array whole;                     /* all gradients, while they accumulate */
	WeightSlot slots[MOST_PREFETCH + 1];
	Prefetcher prefetcher;           /* stage 3: of groups */
	Event freed[GRADIENT_SLOTS];     /* slots of gradients, if sums_apart */
	Event last;                      /* of all collectives */
	bool sync, compared;
	Optimizer optimizer;
	Span *spans;
	/* early: the group whose gradients are on their way, -1: none; the step in
	 * which groups were last updated */
	int pending;
	long updated;
	int counted;                     /* spans that this rank counts in the norm */
} Zero;

/* is the sum of a shard's gradients kept apart from the gradients on the wire?
 * Then those on the wire have slots */
static inline bool sums_apart(const Zero *z)
{
	return z->settings.stage >= 2 || z->settings.exchange;
}

/* this rank's part of an array that is as long as the group */
static inline Array own_part(const Zero *z, const ZeroGroup *g, Array a)
{
	return array_part(z->device, a, z->rank * g->shard);
}

#endif
