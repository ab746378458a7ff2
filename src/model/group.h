/* group.h: the part of a model that one rank of a tensor-parallel group has */
#ifndef MODEL_GROUP_H
#define MODEL_GROUP_H

#include "model/precision.h"
#include "model/shape.h"
#include "ops/types.h"

/* what the compute queue is given after one of these sees the result. n: elements
 * of the shards of all ranks, which are equal and lie one after the other */
typedef struct RankGroup {
	void *self;
	int rank, ranks;
	/* the rank's shard is there, the others follow */
	void (*all_gather)(void *self, Array x, size_t n, const char *what);
	/* the rank's shard ends with the sum, the others with anything */
	void (*reduce_scatter)(void *self, Array x, size_t n, const char *what);
	void (*all_reduce)(void *self, Array x, size_t n, const char *what);
} RankGroup;

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
