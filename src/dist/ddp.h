/* ddp.h: data parallelism: each rank has all weights and a part of the batch */
#ifndef DIST_DDP_H
#define DIST_DDP_H

#include "dist/comm.h"
#include "model/model.h"

/* when gradients are summed: one parameter after the other, or all at once, after
 * the backward pass; each as soon as it is there; bucket by bucket */
typedef enum { DDP_NAIVE, DDP_FLAT, DDP_OVERLAP, DDP_BUCKETED, NDDP } DdpKind;
#define DDP_KINDS "naive|flat|overlap|bucketed"
extern const char *const ddp_names[NDDP];

typedef struct DdpSettings {
	DdpKind kind;
	double bucket_mb;                /* at most, 1e6 bytes on the wire */
	Type wire;                       /* FP32 or BF16 */
} DdpSettings;

typedef struct Ddp Ddp;

/* all ranks get rank 0's weights. Takes the model's hooks, points its gradients
 * at memory of the communicator and its share of the loss at 1/ranks */
Ddp    *ddp_new(Model *m, Comm *c, const DdpSettings *settings);
void    ddp_free(Ddp **ddp);
/* off: gradients stay as they are, for passes that only accumulate */
void    ddp_sync(Ddp *ddp, bool on);
int     ddp_buckets(const Ddp *ddp);

#endif
