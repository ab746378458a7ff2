/* group.h: the part of a model that one rank of a tensor-parallel group has */
#ifndef MODEL_GROUP_H
#define MODEL_GROUP_H

#include "model/precision.h"
#include "model/shape.h"
#include "ops/types.h"

/* the rank's shard is there, the others follow; the rank's shard ends with the
 * sum, the others with anything; all ends with the sum */
typedef enum { GROUP_GATHER, GROUP_SCATTER, GROUP_REDUCE,
	NGROUP_KINDS } GroupKind;
typedef struct GroupOp {
	GroupKind kind;
	Array x;
	/* elements of the shards of all ranks, which are equal and lie one after the
	 * other */
	size_t n;
	const char *what;
} GroupOp;
/* what may be on its way at a time */
typedef enum { SLOT_NOW, SLOT_NORM, SLOT_STREAM, SLOT_GAIN,
	GROUP_SLOTS } GroupSlot;

typedef struct RankGroup {
	void *self;
	int rank, ranks;
	/* multiprocessors of a GPU that matmuls beside a collective leave to it */
	int spare_sms;
	/* the fused path saves what norms leave for all tokens, and does not gather
	 * it again in the backward pass */
	bool keep_norms;
	/* follows what the compute queue has been given. Until it is joined nothing
	 * else uses the array, and nothing else is started in the slot */
	void (*start)(void *self, const GroupOp *op, GroupSlot slot);
	/* what the compute queue is given from now on sees the result */
	void (*join)(void *self, GroupSlot slot);
} RankGroup;
/* both at once */
void group_collective(const RankGroup *g, GroupOp op);

/* NULL, or why no group of so many ranks can have this model */
const char *group_error(const Shape *whole, const Policy *policy, int ranks);
/* the shape of the rank's part; group NULL: of the whole */
Shape  group_shape(const Shape *whole, const RankGroup *g);
/* the first of n rows, heads or columns that the rank has; the next rank's is
 * where its own end */
size_t group_begin(long n, int rank, int ranks);

/* where the rank's part of a parameter lies in that of the whole */
typedef struct Slice {
	size_t row, column, rows, columns;
	size_t whole_rows, whole_columns;
} Slice;

/* of parameter i; gains of norms are whole on all ranks */
Slice  group_slice(const Shape *whole, const RankGroup *g, int i);

#endif
