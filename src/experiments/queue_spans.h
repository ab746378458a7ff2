/* queue_spans.h: timelines of both queues, as rows and as traces */
#ifndef EXPERIMENTS_QUEUE_SPANS_H
#define EXPERIMENTS_QUEUE_SPANS_H

#include "experiments/ddp_case.h"
#include "profile/trace.h"

extern const char *const queue_span_tracks[];
/* of one step, after two that warm up, with its waits or without; spans has room
 * for NSTAMPS. Returns how many there are */
int  queue_spans(DdpCase *c, bool waits, TraceSpan *spans);
#define QUEUE_SPAN_VALUES "queue class name start_us end_us"
/* a row for each */
void queue_spans_emit(Row *row, const TraceSpan *spans, int n);
/* all: room for NSTAMPS spans of each rank; the rank's own n stand in its place.
 * Returns how many there are of all ranks, from the first place on */
int  queue_spans_gather(Comm *comm, TraceSpan *all, int n);

#endif
