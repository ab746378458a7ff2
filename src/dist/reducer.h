/* reducer.h: sums of gradients over the ranks; knows arrays, and no model */
#ifndef DIST_REDUCER_H
#define DIST_REDUCER_H

#include "dist/comm.h"

// name the kinds of data parallelism
/* when gradients are summed. NAIVE: one parameter after the other, FLAT: all at
 * once, both after the backward pass; OVERLAP: each as soon as it is there;
 * BUCKETED: bucket by bucket */
#define LATE_KINDS_OF(FIRST, NEXT) \
	FIRST(DDP_NAIVE, "naive") NEXT(DDP_FLAT, "flat")
#define DDP_KINDS_OF(FIRST, NEXT) LATE_KINDS_OF(FIRST, NEXT) \
	NEXT(DDP_OVERLAP, "overlap") NEXT(DDP_BUCKETED, "bucketed")
#define LATE_KINDS CHOICES(LATE_KINDS_OF)
#define DDP_KINDS CHOICES(DDP_KINDS_OF)
typedef enum { CHOICE_IDS(DDP_KINDS_OF) NDDP } DdpKind;
extern const char *const ddp_names[NDDP];

typedef struct DdpSettings {
	DdpKind kind;
	double bucket_mb;                /* most 1e6 bytes of a bucket on the wire */
	Type wire;                       /* FP32 or BF16 */
	/* ranks exchange unsummed gradients, and the optimizer adds them */
	bool exchange;
} DdpSettings;

// declare the reducer's interface
/* the place of a parameter's gradient among all gradients, in elements; parts
 * ascend and do not overlap. count = 0: the parameter is frozen, without
 * gradient */
typedef struct GradientPart {
	size_t offset, count;
	int uses;                        /* announcements in a step; 2 where tied */
} GradientPart;

typedef struct Reducer Reducer;

/* gradients: `extent` elements of `type`, zeros at first. All ranks call it, with
 * equal arguments. The parts are copied */
Reducer *reducer_new(Device *device, Comm *comm, const DdpSettings *settings,
	const GradientPart *parts, int nparts, size_t extent, Type type);
/* frees the reducer; not between a step's first announcement and
 * reducer_finish */
void     reducer_free(Reducer **reducer);
/* the array of the rank's gradients, which holds the sums after reducer_finish,
 * unless there are reducer_sums */
Array    reducer_gradients(const Reducer *r);
/* says that the gradients of `count` parameters from `first` on are there
 * once the compute queue has reached the event. The last backward pass of a
 * step announces; passes that only accumulate do not. Ends the program on an
 * announcement too many */
void     reducer_ready(Reducer *r, int first, int count, Event when);
/* sends what has not been sent, zeros for what was not announced, and has the
 * compute queue wait for all sums */
void     reducer_finish(Reducer *r);
/* after reducer_finish, the gradients of each rank, laid out as
 * reducer_gradients. The compute queue may read them until the next announcement.
 * n = 0: there are none, since the gradients have been summed */
Gradients reducer_sums(const Reducer *r);
/* how many collectives a step has */
int      reducer_buckets(const Reducer *r);

#endif
