/* rank_group.h: the part of a model that a rank of a tensor-parallel group has */
#ifndef MODEL_RANK_GROUP_H
#define MODEL_RANK_GROUP_H

#include "model/precision.h"
#include "model/shape.h"
#include "ops/types.h"

// declare the collectives of a group
/* GATHER: the rank's shard is there, the others' are filled in. SCATTER: the
 * rank's shard ends with the sum, the others with anything. REDUCE: all of the
 * array ends with the sum */
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
/* slots: collectives that may be under way at the same time */
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
	/* starts a collective behind the work that the compute queue has now.
	 * Until it is joined nothing else uses the array, and the slot is taken */
	void (*start)(void *self, const GroupOp *op, GroupSlot slot);
	/* work that the compute queue gets from now on sees the result */
	void (*join)(void *self, GroupSlot slot);
} RankGroup;
/* starts a collective and joins it at once */
void group_collective(const RankGroup *g, GroupOp op);

// declare the rank's part of a model
/* NULL: a group of so many ranks can have this model; else the reason why not */
const char *group_error(const Shape *whole, const Policy *policy, int ranks);
/* the shape of the rank's part; g NULL: the shape of the whole */
Shape  group_shape(const Shape *whole, const RankGroup *g);
/* the first of n rows, heads or columns that the rank has; the next rank's first
 * is where this rank's end */
size_t group_begin(long n, int rank, int ranks);

/* the place of the rank's part of a parameter in that of the whole */
typedef struct ParameterSlice {
	size_t row, column, rows, columns;
	size_t whole_rows, whole_columns;
} ParameterSlice;

/* the slice of parameter i; gains of norms are whole on all ranks */
ParameterSlice  group_slice(const Shape *whole, const RankGroup *g, int i);

#endif
