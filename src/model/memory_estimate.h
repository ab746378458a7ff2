/* memory_estimate.h: the bytes that a training step holds, from the shapes */
#ifndef MODEL_MEMORY_ESTIMATE_H
#define MODEL_MEMORY_ESTIMATE_H

#include "model/model.h"
#include "model/shard_map.h"

typedef struct MemoryEstimate {
	double category[NCATEGORIES];    /* bytes of each, where it has most */
	double total;                    /* bytes, where all together have most */
} MemoryEstimate;

/* of forward and backward of B sequences of T tokens, and AdamW's if `train`.
 * Left out: workspaces of libraries, scalars, and partial sums of columns */
MemoryEstimate memory_estimate(const Model *m, size_t B, size_t T, bool train);
/* a rank of those that train by ZeRO (dist/zero.h) */
typedef struct Sharding {
	const ShardMap *map;
	int rank, stage, prefetch;
	Type wire;                       /* of gradients */
	bool exchange, early;
} Sharding;
/* the same of a rank, with AdamW's */
MemoryEstimate memory_estimate_sharded(const Model *m, size_t B, size_t T,
	const Sharding *s);
/* total bytes of a forward pass that keeps nothing, without AdamW's */
double  memory_estimate_forward(const Model *m, size_t B, size_t T);
/* bytes that one block saves for its backward pass */
double  memory_estimate_block(const Model *m, size_t B, size_t T);

#endif
