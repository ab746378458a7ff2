/* optimizer_state_sharding_accounting: memory, time and volume with the state of
 * the optimizer on every rank, and with a share on each */
#include "cases/sharding_case.h"

static ShardingGiven given = SHARDING_GIVEN;
static const Option options[] = { SHARDING_OPTIONS(given), { 0 } };
static const Key keys[] = { SHARDING_KEYS, { 0 } };

static void plan(Plan *plan)
{
	sharding_given_settle(&given);
	for (int s = 0; s < NSIZES; s++)
		sharding_plan(plan, &given, s, SINGLE, ZERO1, harness_on_gpu()
			? s == SIZE_XL || s == SIZE_2_7B : s == SIZE_LARGE);
}

static void plan_times(Plan *plan)
{
	sharding_given_settle(&given);
	for (int s = 0; s < NSIZES; s++)
		sharding_plan(plan, &given, s, SINGLE, ZERO1, harness_on_gpu()
			&& (s == SIZE_XL || s == SIZE_2_7B));
}

static void run_memory(Row *row, const void *config)
{
	static const char *const names[NMOMENTS] = { [MOMENT_INIT] = "init",
		[MOMENT_BEFORE] = "before", [MOMENT_AFTER] = "after" };
	ShardingCase *c = sharding_case(row, config);
	Moment moments[NMOMENTS];
	sharding_case_memory(c, moments);
	for (int i = 0; i < NMOMENTS; i++) {
		MemoryEstimate derived = sharding_case_estimate(c, i);
		row_set(row, "moment", "%s", names[i]);
		sharding_case_set_memory(row, &moments[i], &derived);
		row_emit(row);
	}
	sharding_case_close(&c);
}

static void run_times(Row *row, const void *config)
{
	ShardingCase *c = sharding_case(row, config);
	sharding_case_begin(c);
	sharding_case_time(row, c);
	sharding_case_close(&c);
}

const Experiment experiment = {
	.about = "memory, time and volume of steps with sharded optimizer state",
	.options = options, .cpu_scale = SCALED, .sweeps = SWEEPS(
		{ "memory", keys, plan, run_memory,
			.ranks = ddp_config_ranks, .dry = run_memory },
		{ "times", keys, plan_times, run_times,
			.ranks = ddp_config_ranks }),
};
