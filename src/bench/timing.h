/* timing.h: the time of a piece of work that is queued again and again */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include "ops/ops.h"

typedef void Work(void *arg);

typedef struct Timing {
	double ms, sd_ms, min_ms, max_ms;    /* ms: the median */
	int kernels;                         /* launched by one run; 0: not known */
} Timing;

enum { MOST_RUNS = NSTAMPS - 1 };
/* of runs that follow a few more; recorded and replayed where the device can */
Timing timed(Device *d, Work *work, void *arg, int runs);
/* the same, but called each time */
Timing timed_calls(Device *d, Work *work, void *arg, int runs);
/* bytes read and written in a copy of n fp32 numbers, in 1e9 a second */
double copy_GBps(Device *d, size_t n, int runs);
/* the numbers in a copy that measures a peak */
size_t copy_length(const Device *d);

#endif
