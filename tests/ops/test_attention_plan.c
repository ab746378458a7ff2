/* in which order tiles of attention are given out and add to a sum; how long
 * tiles of queries take */
#include "ops/attention_plan.h"
#include "tests/base/program.h"

#include <stdlib.h>
#include <string.h>

// see that numbers are tiles
static void expect_tiles(int heads, int tiles, int together)
{
	int *number = malloc(sizeof *number * heads * tiles);
	memset(number, 0xff, sizeof *number * heads * tiles);
	for (int i = 0; i < heads * tiles; i++) {
		HeadTile at = head_tile(i, heads, tiles, together);
		assert_true(at.head >= 0 && at.head < heads);
		assert_true(at.tile >= 0 && at.tile < tiles);
		assert_int_equal(number[at.head * tiles + at.tile], -1);
		number[at.head * tiles + at.tile] = i;
		assert_true(at.tile == 0
			|| (number[at.head * tiles + at.tile - 1] >= 0
				&& i - number[at.head * tiles + at.tile - 1] <= together));
		assert_true(together > 1
			|| (at.head == i / tiles && at.tile == i % tiles));
	}
	free(number);
}

// see that numbers are tiles for all shapes
static void every_number_is_another_tile(void **state)
{
	for (int heads = 1; heads < 20; heads++)
		for (int tiles = 1; tiles < 20; tiles++)
			for (int together = 1; together <= heads; together++)
				expect_tiles(heads, tiles, together);
	expect_tiles(64, 512, 9);
}

static void heads_that_fit_are_taken_together(void **state)
{
	assert_int_equal(heads_together(64, 1 << 20), 32);
	assert_int_equal(heads_together(16, 1 << 20), 16);
	assert_int_equal(heads_together(16, (1 << 20) + 1), 16);
	assert_int_equal(heads_together(64, (1 << 20) + 1), 31);
	assert_int_equal(heads_together(64, (size_t)1 << 40), 1);
}

// play blocks that add in turn
/* tiles of M queries, tiles of N keys; places for blocks; backwards: the last
 * tile of keys has the first turn, which is wrong; odds: of 4, that a block
 * whose turn it is adds in this round */
typedef struct Play {
	int heads, queries, tiles, M, N, together, places;
	bool causal, backwards;
	int odds;
} Play;

typedef struct Block {
	HeadTile at;
	int next;               /* tile of queries */
} Block;

static int query_tiles(const Play *p)
{
	return (p->queries + p->M - 1) / p->M;
}

static Block block_of(const Play *p, int number)
{
	HeadTile at = head_tile(number, p->heads, p->tiles, p->together);
	if (p->causal)
		at.tile = p->tiles - 1 - at.tile;
	return (Block){ at, p->causal ? at.tile * p->N / p->M : 0 };
}

static int turn_of(const Play *p, const Block *b)
{
	int turn = key_tiles_before(b->at.tile, p->tiles, b->next, p->M, p->N,
		p->causal);
	return p->backwards ? p->tiles - 1 - turn : turn;
}

// let a block add when it is its turn
/* has it added, been drawn, or been through already? */
typedef enum BlockStep { WAITS, RESTS, ADDED, THROUGH } BlockStep;

/* before: how many blocks have added to each tile of queries when the round
 * begins */
static BlockStep step(const Play *p, Block *b, const int *before, int *added)
{
	static unsigned random = 1;
	const int at = b->at.head * query_tiles(p) + b->next;
	if (b->next >= query_tiles(p))
		return THROUGH;
	if (before[at] != turn_of(p, b))
		return WAITS;
	random = random * 1664525 + 1013904223;
	if ((int)(random >> 30) >= p->odds)
		return RESTS;
	assert_int_equal(added[at], before[at]);
	added[at]++;
	b->next++;
	return b->next >= query_tiles(p) ? THROUGH : ADDED;
}

// play rounds until all blocks are through
/* rounds until all are through; -1: all that have a place wait */
static int rounds_of(const Play *p, Block *running, int *before, int *added)
{
	int begun = 0, n = 0, rounds = 0;
	const size_t nbytes = sizeof *added * p->heads * query_tiles(p);
	for (; n > 0 || begun < p->heads * p->tiles; rounds++) {
		bool stuck = true;
		while (n < p->places && begun < p->heads * p->tiles)
			running[n++] = block_of(p, begun++);
		memcpy(before, added, nbytes);
		for (int i = n - 1; i >= 0; i--) {
			BlockStep s = step(p, &running[i], before, added);
			stuck = stuck && s == WAITS;
			if (s == THROUGH)
				running[i] = running[--n];
		}
		if (stuck)
			return -1;
	}
	return rounds;
}

static int play(const Play *p)
{
	const int all = p->heads * query_tiles(p);
	Block *running = malloc(sizeof *running * p->places);
	int *before = calloc(all, sizeof *before),
		*added = calloc(all, sizeof *added);
	const int rounds = rounds_of(p, running, before, added);
	for (int i = 0; rounds >= 0 && i < all; i++) {
		const int seen = ((i % query_tiles(p) + 1) * p->M + p->N - 1) / p->N;
		assert_true(added[i] > 0);
		assert_int_equal(added[i],
			p->causal && seen < p->tiles ? seen : p->tiles);
	}
	free(running), free(before), free(added);
	return rounds;
}

// see that all blocks have their turn
static void all_blocks_have_their_turn(void **state)
{
	static const int places[] = { 1, 2, 3, 7, 16, 132 },
		lengths[] = { 1, 64, 129, 300, 1000 };
	for (int i = 0; i < 6 * 5 * 5 * 4 * 8; i++) {
		Play p = { .places = places[i % 6], .queries = lengths[i / 6 % 5],
			.heads = 1 + i / 30 % 5 * 3, .M = i & 1 ? 64 : 128, .N = 128,
			.tiles = 1 + i / 150 % 4 * 5, .causal = i / 600 & 1,
			.odds = i / 1200 & 1 ? 4 : 1 };
		p.together = i / 2400 ? 1 + p.heads / 2 : 1;
		assert_true(play(&p) > 0);
		p.together = p.heads;
		assert_true(play(&p) > 0);
	}
}

// see that a wrong order waits for ever
static void turns_against_the_numbers_are_found(void **state)
{
	Play p = { .heads = 3, .queries = 512, .tiles = 8, .M = 64, .N = 128,
		.together = 1, .places = 8, .backwards = true, .odds = 4 };
	assert_true(play(&p) > 0);
	p.places = 7;
	assert_int_equal(play(&p), -1);
	p.together = 3;
	p.places = 21;
	assert_int_equal(play(&p), -1);
}

/* if no block waited, 64 rounds */
static void sections_shorten_the_wait(void **state)
{
	Play p = { .heads = 64, .queries = 1024, .tiles = 8, .M = 64, .N = 128,
		.together = 1, .places = 132, .odds = 4 };
	assert_int_equal(play(&p), 85);
	p.together = 32;
	assert_int_equal(play(&p), 67);
}

// see that the estimate counts waves
/* time until `places` have taken all tiles, the longest first */
static double schedule(const QueryTiles *t, size_t queries, size_t keys,
	size_t heads, bool causal, size_t places)
{
	double *busy = calloc(places, sizeof *busy), last = 0;
	for (size_t row = (queries + t->M - 1) / t->M; row-- > 0;)
		for (size_t head = 0; head < heads; head++) {
			size_t first = 0;
			for (size_t i = 1; i < places; i++)
				if (busy[i] < busy[first])
					first = i;
			busy[first] += t->blocks * tile_scores(t, row, keys, causal, 0);
			last = fmax(last, busy[first]);
		}
	free(busy);
	return last * t->relative_cost;
}

// see that no schedule beats the estimate
static void no_schedule_beats_the_estimate(void **state)
{
	static const QueryTiles tiles[] = { { 192, 128, 1, 1 },
		{ 64, 128, 2, 1.25f }, { 256, 80, 1, 1 }, { 64, 128, 1, 1.5f } };
	for (int t = 0; t < 4; t++)
		for (size_t n = 1; n < 5000; n = n * 2 + 57)
			for (size_t heads = 1; heads < 40; heads = heads * 3 + 1)
				for (size_t m = 1; m < 140; m = m * 5 + 7)
					for (int causal = 0; causal < 2; causal++) {
						double least = tiling_time(&tiles[t], n, n + 99, heads,
							causal, 0, m);
						double took = schedule(&tiles[t], n, n + 99, heads,
							causal, m * tiles[t].blocks);
						assert_true(least <= took * (1 + 1e-9));
						assert_true(causal || least >= took * (1 - 1e-9));
					}
}

/* one head of D = 64 on 132 multiprocessors, at lengths that a wave of tiles of
 * 192 just fits, and just does not */
static void waves_choose_the_tiles(void **state)
{
	const QueryTiles wide = { 192, 128, 1, 1 }, m64 = { 64, 128, 2, 1.16f };
	const struct { size_t n; bool causal, wide; } shapes[] = {
		{ 32768, false, false }, { 132 * 192, false, true },
		{ 132 * 192 + 1, false, false }, { 264 * 192, false, true },
		{ 32768, true, false }, { 262144, true, true } };
	for (int i = 0; i < 6; i++) {
		const double a = tiling_time(&wide, shapes[i].n, shapes[i].n, 1,
			shapes[i].causal, 0, 132);
		const double b = tiling_time(&m64, shapes[i].n, shapes[i].n, 1,
			shapes[i].causal, 0, 132);
		assert_int_equal(a <= b, shapes[i].wide);
	}
}

TESTS(
	cmocka_unit_test(every_number_is_another_tile),
	cmocka_unit_test(heads_that_fit_are_taken_together),
	cmocka_unit_test(all_blocks_have_their_turn),
	cmocka_unit_test(turns_against_the_numbers_are_found),
	cmocka_unit_test(sections_shorten_the_wait),
	cmocka_unit_test(no_schedule_beats_the_estimate),
	cmocka_unit_test(waves_choose_the_tiles))
