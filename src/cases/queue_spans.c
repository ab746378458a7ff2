#include "cases/queue_spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// make spans from stamps
static void name_span(const DdpCase *c, const Interval *i, TraceSpan *s)
{
	int last = shape_nunits(&c->m->shape) - 1;
	bool of_unit = strcmp(i->name, "unit") == 0
		|| strcmp(i->name, "before") == 0 || strcmp(i->name, "after") == 0;
	snprintf(s->class, sizeof s->class, "%s", i->class);
	if (!of_unit)
		snprintf(s->name, sizeof s->name, "%s %d", i->name, i->number);
	else if (i->number == 0 || i->number == last)
		snprintf(s->name, sizeof s->name, "%s", i->number ? "head"
			: "embedding");
	else
		snprintf(s->name, sizeof s->name, "block %d", i->number - 1);
}

// time watched steps and read the spans of the last
int queue_spans(Row *row, DdpCase *c, bool waits, TraceSpan *spans)
{
	int n = 0;
	long warmup = c->config.warmup, steps = c->config.steps;
	Stats bare = ddp_case_steps(c, 0, warmup, steps).step, stamped =
		ddp_case_steps(c, WATCH_COMM | WATCH_UNITS, warmup, steps).step;
	row_set(row, "step_ms", "%.4f", bare.median);
	row_set(row, "recorded_ms", "%.4f", stamped.median);
	for (int i = 0; i < c->nintervals; i++) {
		const Interval *v = &c->intervals[i];
		if (v->class == NULL || (!waits && strcmp(v->class, "wait") == 0))
			continue;
		TraceSpan s = { .track = v->queue, .start_us = ddp_case_ms(c, v->from)
			* 1e3, .end_us = ddp_case_ms(c, v->to) * 1e3 };
		name_span(c, v, &s);
		spans[n++] = s;
	}
	TraceSpan s = { .track = COMPUTE, .class = "optimizer", .name = "AdamW",
		.start_us = ddp_case_ms(c, 2) * 1e3, .end_us = ddp_case_ms(c, 3) * 1e3 };
	spans[n++] = s;
	return n;
}

// emit the spans of the first rank, and gather those of all
static const char *const tracks[] = { [COMPUTE] = "compute",
	[COMM] = "communication" };

static void emit(Row *row, const TraceSpan *spans, int n)
{
	for (int i = 0; i < n; i++) {
		row_set(row, "queue", "%s", tracks[spans[i].track]);
		row_set(row, "class", "%s", spans[i].class);
		row_set(row, "name", "%s", spans[i].name);
		row_set(row, "start_us", "%.2f", spans[i].start_us);
		row_set(row, "end_us", "%.2f", spans[i].end_us);
		row_emit(row);
	}
}

// gather the spans of all ranks
void queue_spans_record(Row *row, Comm *comm, const TraceSpan *spans, int n,
	const char *trace)
{
	int ranks = comm_ranks(comm), rank = comm_rank(comm), total = 0;
	TraceSpan *all = need(calloc((size_t)ranks * NSTAMPS, sizeof *all)),
		*mine = all + rank * NSTAMPS;
	if (row->rank == 0)
		emit(row, spans, n);
	for (int i = 0; i < n; i++) {
		mine[i] = spans[i];
		mine[i].rank = rank;
	}
	comm_gather_host(comm, all, NSTAMPS * sizeof *all);
	for (int i = 0; i < ranks * NSTAMPS; i++)
		if (all[i].end_us > 0)
			all[total++] = all[i];
	if (row->rank == 0 && trace)
		trace_write_spans(all, total, tracks, trace);
	free(all);
}
