/* fsdp_accounting: memory and time as more and more is sharded, and timelines of
 * gathers */
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "cases/queue_spans.h"
#include "cases/sharding_case.h"

static ShardingGiven given = SHARDING_GIVEN;
static const char *trace;
static const Option options[] = { SHARDING_OPTIONS(given),
	TRACE_OPTION(&trace, "the last timeline"),
	{ 0 } };
static const Key keys[] = { SHARDING_KEYS, { 0 } };

// measure each strategy
static void plan(Plan *plan)
{
	bool gpu = harness_on_gpu();
	sharding_given_settle(&given);
	for (int s = 0; s < NSIZES; s++)
		if (given.ddp.size >= 0 || s == (gpu ? SIZE_XL : SIZE_LARGE)
			|| (gpu && s == SIZE_2_7B)) {
			bool both = s != SIZE_2_7B;
			sharding_plan(plan, &given, s, DDP, DDP, both);
			sharding_plan(plan, &given, s, ZERO1, FSDP, both);
		}
	ShardingGiven largest = given;
	largest.ddp.size = SIZE_10B;
	largest.prefetch = given.prefetch < 0 ? 1 : given.prefetch;
	if (gpu && given.ddp.size < 0)
		sharding_plan(plan, &largest, SIZE_10B, FSDP, FSDP, false);
}

// measure memory, then time
static void run(Row *row, const void *config)
{
	ShardingCase *c = sharding_case(row, config);
	Moment moments[NMOMENTS];
	sharding_case_memory(c, moments);
	MemoryEstimate derived = sharding_case_estimate(c, MOMENT_BEFORE);
	sharding_case_set_memory(row, &moments[MOMENT_BEFORE], &derived);
	sharding_case_time(row, c);
	sharding_case_close(&c);
}

// measure memory without a machine
static void run_dry(Row *row, const void *config)
{
	ShardingCase *c = sharding_case(row, config);
	Moment moments[NMOMENTS];
	sharding_case_memory(c, moments);
	sharding_case_set_memory(row, &moments[MOMENT_BEFORE], NULL);
	sharding_case_close(&c);
}

// record timelines of FSDP
static void plan_timeline(Plan *plan)
{
	sharding_given_settle(&given);
	if (trace)
		file_try(trace, trace_recognised, harness_forced());
	int size = given.ddp.size >= 0 ? given.ddp.size : harness_on_gpu() ? SIZE_XL
		: SIZE_LARGE;
	sharding_plan(plan, &given, size, FSDP, FSDP, false);
}

static void run_timeline(Row *row, const void *config)
{
	ShardingCase *c = sharding_case(row, config);
	TraceSpan *spans = need(calloc(NSTAMPS, sizeof *spans));
	sharding_case_begin(c);
	int n = queue_spans(row, c->run, true, spans);
	queue_spans_record(row, c->run->comm, spans, n, trace);
	free(spans);
	sharding_case_close(&c);
}

const Experiment experiment = {
	.about = "memory and time as more is sharded, and timelines of gathers",
	.options = options, .cpu_scale = SCALED, .sweeps = SWEEPS(
		{ "strategies", keys, plan, run,
			.ranks = ddp_config_ranks, .dry = run_dry },
		{ "timeline", keys, plan_timeline, run_timeline,
			.ranks = ddp_config_ranks }),
};
