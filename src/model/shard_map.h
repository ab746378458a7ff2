/* shard_map.h: which elements of a model each of several ranks owns */
#ifndef MODEL_SHARD_MAP_H
#define MODEL_SHARD_MAP_H

#include "model/shape.h"

// declare groups and the map of shards
/* the matrices of adjacent units, which are gathered and reduced together */
typedef struct ShardGroup {
	int first, count;                /* units */
	/* elements of the units, and with the padding; a multiple of 64 ranks */
	size_t used, extent;
	size_t offset;                   /* the sum of the extents before it */
} ShardGroup;

typedef struct ShardMap {
	Shape shape;
	int ranks, ngroups;
	ShardGroup *groups;
	int *of_unit;                    /* the group of a unit */
	size_t extent;                   /* elements of all groups */
	/* elements of the gains of all norms, which every rank has */
	size_t gains;
} ShardMap;

// declare how shards are cut and found
/* groups of `most` elements at most, or of one unit that is larger; the
 * embedding is one of its own */
ShardMap shard_map_new(const Shape *shape, int ranks, size_t most);
void     shard_map_free(ShardMap *map);
/* the start of a parameter: of a matrix in its group, of a gain among the
 * gains */
size_t   shard_map_place(const ShardMap *map, int parameter);
/* a rank's part of a parameter that is no gain: elements begin to end - 1 of
 * the tensor; begin = end: nothing */
typedef struct ShardRange {
	size_t begin, end;
} ShardRange;
ShardRange shard_map_range(const ShardMap *map, int parameter, int rank);

#endif
