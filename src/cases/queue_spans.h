/* queue_spans.h: timelines of both queues, as rows and as traces */
#ifndef CASES_QUEUE_SPANS_H
#define CASES_QUEUE_SPANS_H

#include "cases/ddp_steps.h"
#include "profile/trace.h"

/* times steps without stamps around what queues do and with them, as step_ms and
 * recorded_ms of the row, and sets spans to those of the last, for which there is
 * room for NSTAMPS; waits: those of the compute queue too. Returns how many there
 * are */
int  queue_spans(Row *row, DdpCase *c, bool waits, TraceSpan *spans);
/* emits a row for each of the first rank's n spans, and writes all ranks' spans
 * as a trace into a file; NULL: into none */
void queue_spans_record(Row *row, Comm *comm, const TraceSpan *spans, int n,
	const char *trace);

#endif
