/* ranks with a GPU each, of which one is killed while they train */
#define _GNU_SOURCE
#include "tests/dist/lost_rank.h"

static void kill_one(FaultyStrategy s, const char *transport)
{
	lose_rank((StrategyFault){ .strategy = s, .ranks = 2, .happens = be_killed,
		.limit_s = 30, .device = "cuda:", .transport = transport }, 400000,
		-SIGKILL, "lost rank %d in", 30e3);
}

static void a_killed_rank_ends_all_on_gpus(void **state)
{
	if (!have_gpus(2))
		skip();
#ifdef HAVE_NCCL
	for (FaultyStrategy s = 0; s < NSTRATEGIES; s++)
		if (s != SHARDED && s != ZERO2)
			kill_one(s, "symmetric");
#endif
	kill_one(DDP, "push");
	kill_one(FSDP, "push");
}

TESTS(cmocka_unit_test(a_killed_rank_ends_all_on_gpus))
