/* things are in their slots when they are visited */
#include <stdbool.h>
#include <time.h>

#include "base/prefetch.h"
#include "base/random.h"
#include "tests/base/program.h"

enum { THINGS = 9, MOST_AHEAD = 4, VISITS = 2 * THINGS };

/* slots as a fetch fills them, and what a pass visits */
typedef struct Walk {
	Prefetcher p;
	int slot[MOST_AHEAD + 1], visits[VISITS], nvisits, now;
	int fetched, found;              /* before the visit */
	bool known;                      /* was the pass before this one alike? */
} Walk;

static void fill_slot(void *self, int thing)
{
	Walk *w = self;
	int *slot = &w->slot[prefetcher_slot(&w->p, thing)];
	assert_int_not_equal(*slot, thing);
	int end = w->known ? w->nvisits : 0;
	for (int i = w->now; i < end && w->visits[i] != thing; i++)
		if (w->visits[i] == *slot)
			fail_msg("%d takes the slot of %d, which is needed first", thing,
				*slot);
	*slot = thing;
	w->fetched++;
}

/* one pass; returns how many things were fetched in it */
static int pass(Walk *w)
{
	w->fetched = w->found = 0;
	prefetcher_begin_pass(&w->p);
	for (w->now = 0; w->now < w->nvisits; w->now++) {
		int thing = w->visits[w->now];
		w->found += w->slot[prefetcher_slot(&w->p, thing)] == thing;
		prefetcher_visit(&w->p, thing);
		assert_int_equal(w->slot[prefetcher_slot(&w->p, thing)], thing);
	}
	return w->fetched;
}

// test: a walk up and down fetches no thing twice
static Walk walk_up_and_down(int ahead)
{
	Walk w = { .nvisits = 2 * THINGS - 1 };
	for (int i = 0; i < w.nvisits; i++)
		w.visits[i] = i < THINGS ? i : 2 * (THINGS - 1) - i;
	for (int i = 0; i <= MOST_AHEAD; i++)
		w.slot[i] = -1;
	w.p = prefetcher_new(ahead, fill_slot, NULL);
	return w;
}

static void no_thing_is_fetched_twice(void **state)
{
	for (int ahead = 0; ahead <= MOST_AHEAD; ahead++) {
		Walk w = walk_up_and_down(ahead);
		int slots = ahead + 1, there = 2 * THINGS - slots;
		w.p.self = &w;
		assert_int_equal(pass(&w), there);
		w.known = true;
		assert_int_equal(pass(&w), there - slots);
		assert_true(ahead == 0 || w.found == w.nvisits);
		for (int i = 0; i <= MOST_AHEAD; i++)
			w.slot[i] = -1;
		w.now = w.fetched = 0;
		prefetcher_renew(&w.p);
		assert_int_equal(w.fetched, slots);
		for (int i = 0; i < slots; i++)
			assert_int_equal(w.slot[i], i);
		assert_int_equal(pass(&w), there - slots);
		prefetcher_free(&w.p);
	}
}

// test: a walk that jumps finds what it visits
static void jumps_are_followed(void **state)
{
	uint64_t seed = (uint64_t)time(NULL), draws = 0;
	for (int trial = 0; trial < 200; trial++) {
		Walk w = walk_up_and_down(trial % (MOST_AHEAD + 1));
		w.p.self = &w;
		for (int turn = 0; turn < 6; turn++) {
			w.known = turn % 2;
			for (int i = 0; i < w.nvisits && !w.known; i++)
				w.visits[i] = (int)(THINGS * random_uniform(seed, 5, draws++))
					% THINGS;
			pass(&w);
		}
		prefetcher_free(&w.p);
	}
}

TESTS(
	cmocka_unit_test(no_thing_is_fetched_twice),
	cmocka_unit_test(jumps_are_followed))
