/* ddp_overlap_individual_parameters_benchmarking: gradients summed as they come;
 * and timelines of both queues */
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "cases/ddp_plan.h"
#include "cases/queue_spans.h"

static DdpGiven given = DDP_GIVEN;
static const char *trace;
static const Option options[] = { DDP_OPTIONS(given),
	TRACE_OPTION(&trace, "the timeline"),
	{ 0 } };

// plan kinds, and two timelines
static void plan(Plan *plan)
{
	ddp_given_settle(&given);
	ddp_plan_kinds(plan, &given, DDP_OVERLAP + 1);
}

static void plan_timeline(Plan *plan)
{
	static const int kinds[] = { DDP_NAIVE, DDP_OVERLAP };
	bool gpu = harness_on_gpu();
	ddp_given_settle(&given);
	if (trace)
		file_try(trace, trace_recognised, harness_forced());
	int size = given.size >= 0 ? given.size : gpu ? SIZE_XL : SIZE_LARGE,
		precision = given.precision >= 0 ? given.precision
			: gpu ? POLICY_BF16 : POLICY_FP32;
	for (int k = 0; k < 2; k++)
		ddp_plan(plan, &given, (DdpConfig){ { size, .precision = precision },
			.kind = kinds[k], .wire = ddp_wire(&given) });
}

// record a timeline of a step
static void run_timeline(Row *row, const void *config)
{
	DdpCase *c = ddp_case(row, config);
	TraceSpan *spans = need(calloc(NSTAMPS, sizeof *spans));
	ddp_case_begin(c, true, c->config.kind, 0);
	int n = queue_spans(row, c, false, spans);
	queue_spans_record(row, c->comm, spans, n, c->config.kind == DDP_OVERLAP
		? trace : NULL);
	free(spans);
	ddp_case_end(c);
	ddp_case_close(&c);
}

// describe the sweeps of overlap to the harness
const Experiment experiment = {
	.about = "times steps that sum each gradient as soon as it is there",
	.options = options, .cpu_scale = SCALED, .sweeps = SWEEPS(
		DDP_SWEEP("kinds", plan),
		{ "timeline", ddp_keys, plan_timeline, run_timeline,
			.ranks = ddp_config_ranks }),
};
