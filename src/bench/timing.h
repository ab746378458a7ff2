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
/* the time of one run of the work, over so many runs after a few for warm-up; the
 * work is captured as a graph and replayed where the device can, else called */
Timing timed(Device *d, Work *work, void *arg, int runs);
/* times as timed does, but calls the work each time and never captures it */
Timing timed_calls(Device *d, Work *work, void *arg, int runs);
/* bandwidth of a copy of n fp32 elements: bytes read and written, in 1e9
 * bytes/s */
double copy_GBps(Device *d, size_t n, int runs);
/* elements of a copy that measures a peak, far more than caches hold */
size_t copy_length(const Device *d);
/* x (n), fp32: normal numbers, of which a part is drawn and then repeated */
void draw_repeated(Device *d, Array x, size_t n, uint64_t seed);

#endif
