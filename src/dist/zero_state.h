/* zero_state.h: a sharded model as the parts of the module see it */
#ifndef DIST_ZERO_STATE_H
#define DIST_ZERO_STATE_H

#include "dist/comm.h"
#include "model/shard_map.h"
#include "train/optimizer.h"

typedef struct ZeroSettings {
	/* sharded; 1: masters and state of the optimizer; 2: gradients as well; 3:
	 * weights as well */
	int stage;
	/* stage 3: so many groups are gathered before they are needed; 0 to
	 * MOST_PREFETCH. It takes prefetch + 1 slots */
	int prefetch;
	/* most gradients that a collective moves, 1e6 bytes on the wire, if it moves
	 * more than one unit; 0: each unit alone. Gathers move as many weights */
	double bucket_mb;
	Type wire;                       /* of gradients: FP32 or BF16 */
	/* gradients travel as they are, and the update sums the ranks'. Only where
	 * comm_exchanges, and on the fused path. Each rank keeps those of its shards
	 * from all ranks, so without `early` no stage has less than all gradients */
	bool exchange;
	/* stage 2: the backward pass updates a group as soon as its gradients are
	 * summed, and sends the weights back; then no stage keeps all gradients.
	 * Without clipping and for steps of one pass, by timed_step or
	 * replayed_step */
	bool early;
	/* what has been given up becomes NaN, for tests */
	bool poison;
} ZeroSettings;
enum { MOST_PREFETCH = 4 };

// declare a sharded model
enum { GRADIENT_SLOTS = 2,
	NORM_ELEMENTS = 4 };             /* 16 bytes; the first counts */

typedef struct Group {
	size_t n, shard;                 /* elements of it, and of a rank's part */
	Array weights, gradients, wire;  /* (n) */
	Array home;                      /* (n) gradients but where all are kept */
	/* (shard) of this rank; low: what is gathered, or its master */
	Array master, low, sum;
	Event gathered;                  /* stages 1 and 2 */
	int spans;                       /* of the optimizer */
	Event summed;
} Group;

/* memory for the weights of the groups k, k + slots, ... */
typedef struct Slot {
	void *at;
	int holds;                       /* a group; -1: none */
	Event ready;
} Slot;

typedef struct Zero {
	Model *m;
	Device *device;
	const Ops *ops;
	Comm *comm;
	ZeroSettings settings;
	ShardMap map;
	int rank;
	Group *groups, gains;
	Array masters, lows, sums;       /* of all groups where they lie apart */
	Gradients parts;                 /* of exchanges: shards of all ranks */
	size_t summed;                   /* elements of sums, without gains */
	Array whole;                     /* all gradients, while they accumulate */
	/* stage 3: groups in the order of a pass, as far as it is known, `at` of them
	 * entered, the last one `current` */
	Slot slots[MOST_PREFETCH + 1];
	int *order, norder, at, current;
	Event freed[GRADIENT_SLOTS];     /* slots of gradients, if sums_apart */
	Event last;                      /* of all collectives */
	bool sync, compared;
	Optimizer optimizer;
	Span *spans;
	/* early: the group whose gradients are on their way, or -1; the step that
	 * groups were last updated in */
	int pending;
	long updated;
	int counted;                     /* of them, by this rank, in the norm */
} Zero;

/* does a shard's gradient lie apart from those on the wire? Then these have
 * slots */
static inline bool sums_apart(const Zero *z)
{
	return z->settings.stage >= 2 || z->settings.exchange;
}

/* of an array as long as the group */
static inline Array own_part(const Zero *z, const Group *g, Array a)
{
	return array_part(z->device, a, z->rank * g->shard);
}

#endif
