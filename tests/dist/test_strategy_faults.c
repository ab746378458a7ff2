/* ranks that are lost or go astray while they train: every rank ends, and says
 * why, whatever the strategy */
#define _GNU_SOURCE
#include "tests/dist/lost_rank.h"

// lose ranks of every strategy
static void try_strategies(void (*happens)(int), int limit_s, int status,
	const char *want)
{
	for (FaultyStrategy s = 0; s < NSTRATEGIES; s++)
		lose_rank((StrategyFault){ .strategy = s, .ranks = 3, .happens = happens,
			.limit_s = limit_s, .device = "cpu", .transport = "ring" }, 60000,
			status, want, 20e3);
}

static void killed_ranks_end_every_strategy(void **state)
{
	try_strategies(be_killed, 10, -SIGKILL, "lost rank %d in");
}

static void ranks_that_leave_end_every_strategy(void **state)
{
	try_strategies(walk_out, 10, 0, "lost rank %d in");
}

static void stopped_ranks_end_every_strategy(void **state)
{
	try_strategies(be_stopped, 1, -SIGSTOP, "has not ended after 1 s");
}

static void skipped_collectives_end_every_strategy(void **state)
{
	try_strategies(NULL, 10, 1, "rank %d is in");
}

TESTS(
	cmocka_unit_test(killed_ranks_end_every_strategy),
	cmocka_unit_test(ranks_that_leave_end_every_strategy),
	cmocka_unit_test(stopped_ranks_end_every_strategy),
	cmocka_unit_test(skipped_collectives_end_every_strategy))
