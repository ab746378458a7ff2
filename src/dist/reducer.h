/* reducer.h: sums of gradients over the ranks; knows arrays, and no model */
#ifndef DIST_REDUCER_H
#define DIST_REDUCER_H

#include "dist/comm.h"

/* when gradients are summed: one parameter after the other, or all at once, after
 * the backward pass; each as soon as it is there; bucket by bucket */
typedef enum { DDP_NAIVE, DDP_FLAT, DDP_OVERLAP, DDP_BUCKETED, NDDP } DdpKind;
#define DDP_KINDS "naive|flat|overlap|bucketed"
extern const char *const ddp_names[NDDP];

typedef struct DdpSettings {
	DdpKind kind;
	double bucket_mb;                /* at most, 1e6 bytes on the wire */
	Type wire;                       /* FP32 or BF16 */
	/* whole gradients travel, and whoever reads them sums */
	bool exchange;
} DdpSettings;

/* a parameter's place in the gradients, in elements; places ascend and do not
 * overlap. count = 0: it is frozen and has no gradient */
typedef struct Part {
	size_t offset, count;
	int uses;                        /* announcements in a step; tied: 2 */
} Part;

typedef struct Reducer Reducer;

/* gradients: extent elements of `type`, zeros at first. All ranks call it, with
 * equal arguments */
Reducer *reducer_new(Device *device, Comm *comm, const DdpSettings *settings,
	const Part *parts, int nparts, size_t extent, Type type);
/* not while a step is between its first announcement and reducer_finish */
void     reducer_free(Reducer **reducer);
/* where the rank's gradients go, and where the sums are after reducer_finish,
 * unless there are reducer_sums */
Array    reducer_gradients(const Reducer *r);
/* gradients of `count` parameters from first on are there once the compute queue
 * has reached the event. The last backward pass of a step announces; passes that
 * only accumulate do not. Ends the program on an announcement too many */
void     reducer_ready(Reducer *r, int first, int count, Event when);
/* sends what has not been sent, zeros for what was not announced, and has the
 * compute queue wait for all sums */
void     reducer_finish(Reducer *r);
/* the ranks' gradients after reducer_finish, laid out as reducer_gradients, which
 * the compute queue may read until the next announcement. n = 0: none, they have
 * been summed */
Gradients reducer_sums(const Reducer *r);
/* collectives of a step */
int      reducer_buckets(const Reducer *r);

#endif
