/* attention_plan.h: in which order tiles of attention are given out, in which
 * order they add to a sum, and which tiles of queries take the least time */
#ifndef OPS_ATTENTION_PLAN_H
#define OPS_ATTENTION_PLAN_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __CUDACC__
#define ANYWHERE static inline __host__ __device__
#else
#define ANYWHERE static inline
#endif

typedef struct HeadTile {
	int head, tile;
} HeadTile;

/* which tile has this number, of `tiles` in each of `heads`? Numbers go through
 * sections of `together` heads, in a section through the first tiles of all its
 * heads, then through the second ones */
ANYWHERE HeadTile head_tile(int number, int heads, int tiles, int together)
{
	const int section = number / (together * tiles),
		first = section * together, rest = number - first * tiles,
		here = heads - first < together ? heads - first : together;
	const HeadTile at = { first + rest % here, rest / here };
	return at;
}

/* heads that stay in the L2 cache together, 32 MiB of its 50; nbytes: of one */
static inline int heads_together(size_t heads, size_t nbytes)
{
	const size_t fit = ((size_t)32 << 20) / nbytes;
	return (int)(fit < 1 ? 1 : fit < heads ? fit : heads);
}

/* how many of a head's tiles of N keys add to tile j of M queries before this
 * one? */
ANYWHERE int key_tiles_before(int tile, int tiles, int j, int M, int N,
	bool causal)
{
	const int end = ((j + 1) * M + N - 1) / N;
	return causal ? (end < tiles ? end : tiles) - 1 - tile : tile;
}

#endif
