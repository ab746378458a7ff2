/* memory_estimate.h: the bytes that a training step holds, from the shapes */
#ifndef ESTIMATE_MEMORY_ESTIMATE_H
#define ESTIMATE_MEMORY_ESTIMATE_H

#include "model/model.h"
#include "model/shard_map.h"

typedef struct MemoryEstimate {
	double category[NCATEGORIES];    /* bytes of each, where it has most */
	double total;                    /* bytes, where all together have most */
} MemoryEstimate;

/* a forward and a backward pass of B sequences of T tokens, and AdamW's update if
 * `train`; workspaces, scalars and partial sums are left out */
MemoryEstimate memory_estimate(const Model *m, size_t B, size_t T, bool train);
/* a rank of a job that trains by ZeRO, with the settings of dist/zero.h */
typedef struct Sharding {
	const ShardMap *map;
	int rank, stage, prefetch;
	Type wire;                       /* of gradients */
	bool exchange, early;
} Sharding;
/* the bytes of a step of one such rank, with AdamW's update */
MemoryEstimate memory_estimate_sharded(const Model *m, size_t B, size_t T,
	const Sharding *s);
/* total bytes of a forward pass that keeps nothing, without AdamW's */
double  memory_estimate_forward(const Model *m, size_t B, size_t T);
/* bytes that one block saves for its backward pass */
double  memory_estimate_block(const Model *m, size_t B, size_t T);

#endif
