/* attention_plan.h: what a mask hides, in which order tiles of attention are
 * given out and add to a sum, and which tiles of queries take the least time */
#ifndef OPS_ATTENTION_PLAN_H
#define OPS_ATTENTION_PLAN_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "ops/attention_types.h"

// mark functions for the host and for kernels
#ifdef __CUDACC__
#define ANYWHERE static inline __host__ __device__
#else
#define ANYWHERE static inline
#endif

// number the tiles of heads
/* a tile of a head, both counted from 0 */
typedef struct HeadTile {
	int head, tile;
} HeadTile;

/* the tile of this number, where each of `heads` has `tiles`. Numbers go through
 * sections of `together` heads; in a section, through the first tiles of all its
 * heads, then through the second ones */
ANYWHERE HeadTile head_tile(int number, int heads, int tiles, int together)
{
	const int section = number / (together * tiles),
		first = section * together, rest = number - first * tiles,
		here = heads - first < together ? heads - first : together;
	const HeadTile at = { first + rest % here, rest / here };
	return at;
}

/* heads whose data fit in the L2 cache together, in 32 MiB of its 50; nbytes: of
 * one head */
static inline int heads_together(size_t heads, size_t nbytes)
{
	const size_t fit = ((size_t)32 << 20) / nbytes;
	return (int)(fit < 1 ? 1 : fit < heads ? fit : heads);
}

// find what a mask lets queries see
/* how many keys beyond key i query i sees, if it is causal */
ANYWHERE int mask_diagonal(const Attention *a)
{
	return a->bottom_right ? (int)a->seqlen_k - (int)a->seqlen_q : 0;
}

/* the key after the last that queries before `end` see. At least 1, if there are
 * keys: a tile of queries that sees none computes one tile of them, all masked */
ANYWHERE int keys_seen(int end, int seqlen_k, bool causal, int diagonal)
{
	const int last = end + diagonal;
	return !causal || last > seqlen_k || seqlen_k < 1 ? seqlen_k
		: last > 1 ? last : 1;
}

/* the first query that sees this key */
ANYWHERE int first_query_of(int key, bool causal, int diagonal)
{
	return causal && key > diagonal ? key - diagonal : 0;
}

// count the tiles of keys that add before
/* the number of a head's `tiles` tiles of N keys that add to tile j of M
 * queries, where the mask begins at the first key */
ANYWHERE int key_tiles_of(int j, int tiles, int M, int N, bool causal)
{
	const int end = ((j + 1) * M + N - 1) / N;
	return causal && end < tiles ? end : tiles;
}

/* the number of these that add before `tile` */
ANYWHERE int key_tiles_before(int tile, int tiles, int j, int M, int N,
	bool causal)
{
	return causal ? key_tiles_of(j, tiles, M, N, causal) - 1 - tile : tile;
}

// estimate the time of tiles of queries
/* tiles of M queries by N keys; blocks of threads on a multiprocessor; time for a
 * score relative to multi_warpgroup's */
typedef struct QueryTiles {
	int M, N, blocks;
	float relative_cost;
} QueryTiles;

/* scores that the tile of queries `row` computes, in whole tiles of keys */
static inline double tile_scores(const QueryTiles *t, size_t row,
	size_t seqlen_k, bool causal, int diagonal)
{
	const size_t seen = keys_seen((int)((row + 1) * t->M), (int)seqlen_k, causal,
		diagonal);
	return (double)t->M * ((seen + t->N - 1) / t->N * t->N);
}

/* the longest of: a multiprocessor's share of all scores; for each k, k + 1 of
 * the longest k m + 1 tiles, where m blocks run at once */
static inline double tiling_time(const QueryTiles *t, size_t seqlen_q,
	size_t seqlen_k, size_t heads, bool causal, int diagonal,
	size_t multiprocessors)
{
	const size_t rows = (seqlen_q + t->M - 1) / t->M,
		at_once = multiprocessors * t->blocks;
	double sum = 0, longest = 0;
	for (size_t row = 0; row < rows; row++)
		sum += tile_scores(t, row, seqlen_k, causal, diagonal);
	for (size_t k = 0; k * at_once < rows * heads; k++)
		longest = fmax(longest, (double)(k + 1) * t->blocks * tile_scores(t,
			rows - 1 - k * at_once / heads, seqlen_k, causal, diagonal));
	return t->relative_cost * fmax(sum * heads / multiprocessors, longest);
}

#endif
