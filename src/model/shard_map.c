#include "model/shard_map.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"

// count the matrices of a unit
static size_t padded(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static int unit_of(const Shape *s, int parameter)
{
	int head = shape_nunits(s) - 1;
	if (parameter == 0)
		return 0;
	return parameter >= shape_unit(s, head).first ? head
		: 1 + (parameter - 1) / NBLOCK;
}

/* how many elements of a unit's matrices come before a parameter */
static size_t matrices_before(const Shape *s, int unit, int parameter)
{
	size_t n = 0;
	for (int i = shape_unit(s, unit).first; i < parameter; i++) {
		Parameter p = shape_parameter(s, i);
		n += p.gain ? 0 : p.count;
	}
	return n;
}

static size_t matrix_elements(const Shape *s, int unit)
{
	Unit u = shape_unit(s, unit);
	return padded(matrices_before(s, unit, u.first + u.count), UNIT_ALIGN);
}

// cut a model into groups
static void cut_groups(ShardMap *map, size_t most)
{
	int nunits = shape_nunits(&map->shape);
	size_t block = matrix_elements(&map->shape, 1);
	for (int u = 0; u < nunits; u++) {
		ShardGroup *g = map->ngroups ? &map->groups[map->ngroups - 1] : NULL;
		size_t n = u > 0 && u < nunits - 1 ? block
			: matrix_elements(&map->shape, u);
		if (u <= 1 || g->used + n > most) {
			g = &map->groups[map->ngroups++];
			*g = (ShardGroup){ .first = u };
		}
		g->count++;
		g->used += n;
		map->of_unit[u] = map->ngroups - 1;
	}
}

// make and free a map
ShardMap shard_map_new(const Shape *shape, int ranks, size_t most)
{
	int nunits = shape_nunits(shape);
	ShardMap map = { .shape = *shape, .ranks = ranks };
	map.groups = need(calloc(nunits, sizeof *map.groups));
	map.of_unit = need(calloc(nunits, sizeof *map.of_unit));
	map.gains = (2 * shape->layers + 1) * shape->d_model;
	cut_groups(&map, most);
	for (int k = 0; k < map.ngroups; k++) {
		ShardGroup *g = &map.groups[k];
		g->extent = padded(g->used, (size_t)UNIT_ALIGN * ranks);
		g->offset = map.extent;
		map.extent += g->extent;
	}
	return map;
}

void shard_map_free(ShardMap *map)
{
	free(map->groups);
	free(map->of_unit);
	*map = (ShardMap){ 0 };
}

// find a parameter in its group
static size_t place_of_gain(const Shape *s, int parameter)
{
	int unit = unit_of(s, parameter);
	bool second = parameter == shape_unit(s, unit).first + P_LN2;
	return (2 * (unit - 1) + second) * s->d_model;
}

size_t shard_map_place(const ShardMap *map, int parameter)
{
	const Shape *s = &map->shape;
	int unit = unit_of(s, parameter);
	if (shape_parameter(s, parameter).gain)
		return place_of_gain(s, parameter);
	int before = unit - map->groups[map->of_unit[unit]].first;
	return matrices_before(s, unit, parameter)
		+ (before > 0 ? before * matrix_elements(s, unit - 1) : 0);
}

ShardRange shard_map_range(const ShardMap *map, int parameter, int rank)
{
	const ShardGroup *g = &map->groups[map->of_unit[unit_of(&map->shape,
		parameter)]];
	Parameter p = shape_parameter(&map->shape, parameter);
	assert(!p.gain);
	size_t place = shard_map_place(map, parameter), end = place + p.count,
		shard = g->extent / map->ranks, from = rank * shard, to = from + shard;
	from = from > place ? from : place;
	to = to < end ? to : end;
	return from < to ? (ShardRange){ from - place, to - place }
		: (ShardRange){ 0, 0 };
}
