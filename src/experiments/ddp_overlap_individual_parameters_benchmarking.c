/* ddp_overlap_individual_parameters_benchmarking: gradients summed as they come;
 * and timelines of both queues */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "cases/queue_spans.h"
#include "profile/profile.h"

#include "cases/ddp_plan.h"

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
	int size = given.size >= 0 ? given.size : gpu ? SIZE_SMALL : SIZE_LARGE,
		precision = given.precision >= 0 ? given.precision
			: gpu ? POLICY_BF16 : POLICY_FP32;
	for (int k = 0; k < 2; k++)
		ddp_plan(plan, &given, (DdpConfig){ { size, .precision = precision },
			.kind = kinds[k], .wire = ddp_wire(&given) });
}

// make spans from a profile
static Profile *profile_step(DdpCase *c)
{
	Device *d = c->device;
	char *two = device_alloc(d, 128, MEM_TEMPORARY, "marker");
	comm_barrier(c->comm);
	Profile *p = profile_start(d, true);
	RANGE(d, "marker")
		device_copy(d, COMM, two, two + 64, 64);
	comm_barrier(c->comm);
	timed_step(c->m, &c->adamw, &c->batch, MODE_TRAIN);
	profile_stop(p);
	device_free(d, two);
	return p;
}

// find the communication queue in a profile
static unsigned marked_stream(const Profile *p)
{
	for (size_t i = 0; i < p->nactivities; i++)
		if (profile_within(p, p->activities[i].range, "marker") >= 0)
			return p->activities[i].stream;
	die("the profile does not show the communication queue");
}

// make a span of each activity
static int spans_of_profile(DdpCase *c, const Profile *p, TraceSpan *spans)
{
	static const char *const phases[] = { "forward", "backward", "optimizer" };
	unsigned comm = marked_stream(p);
	double zero = 0;
	int n = 0;
	for (size_t i = 0; i < p->nactivities; i++) {
		const Activity *w = &p->activities[i];
		if (profile_within(p, w->range, "step") < 0)
			continue;
		if (n == NSTAMPS)
			die("the step has more activities than a timeline holds");
		zero = n ? zero : -comm_max(c->comm, -w->start_us);
		TraceSpan s = { .track = w->stream == comm ? COMM : COMPUTE,
			.start_us = w->start_us - zero, .end_us = w->end_us - zero };
		const char *class = w->stream == comm ? "all-reduce" : "rest";
		for (int k = 0; k < 3 && s.track == COMPUTE; k++)
			if (profile_within(p, w->range, phases[k]) >= 0)
				class = phases[k];
		snprintf(s.class, sizeof s.class, "%s", class);
		snprintf(s.name, sizeof s.name, "%s", w->name);
		spans[n++] = s;
	}
	return n;
}

// record a timeline of a step
static void run_timeline(Row *row, const void *config)
{
	DdpCase *c = ddp_case(row, config);
	TraceSpan *spans = need(calloc(NSTAMPS, sizeof *spans));
	ddp_case_begin(c, true, c->config.kind, 0);
	ddp_case_steps(c, 0, c->config.warmup, 1);
	Profile *p = profile_step(c);
	int n = p->sees_activities ? spans_of_profile(c, p, spans)
		: queue_spans(c, false, spans);
	profile_free(&p);
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
