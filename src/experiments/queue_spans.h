/* queue_spans.h: timelines of both queues, as rows and as traces */
#ifndef EXPERIMENTS_QUEUE_SPANS_H
#define EXPERIMENTS_QUEUE_SPANS_H

#include "experiments/ddp_case.h"
#include "profile/trace.h"

/* of one step, after two that warm up, with its waits or without; spans has room
 * for NSTAMPS. Returns how many there are */
int  queue_spans(DdpCase *c, bool waits, TraceSpan *spans);
#define QUEUE_SPAN_VALUES "queue class name start_us end_us"
/* a row for each of the first rank's n; all ranks' spans as a trace in that file,
 * at NULL nowhere */
void queue_spans_record(Row *row, Comm *comm, const TraceSpan *spans, int n,
	const char *trace);

#endif
