/* ddp.h: data parallelism: each rank has all weights and a part of the batch */
#ifndef DIST_DDP_H
#define DIST_DDP_H

#include "dist/reducer.h"
#include "train/optimizer.h"

typedef struct Ddp Ddp;

/* all ranks get rank 0's weights. Takes the model's hooks, points its gradients
 * at reducer_gradients, and sets its share of the loss to 1/ranks. The model
 * has made no backward pass yet */
Ddp    *ddp_new(Model *m, Comm *c, const DdpSettings *settings);
/* before the model and the communicator are freed */
void    ddp_free(Ddp **ddp);
/* off: gradients stay as they are, for passes that only accumulate */
void    ddp_sync(Ddp *ddp, bool on);
/* lets the model's optimizer sum the gradients that DdpSettings.exchange leaves
 * unsummed; called before the first step */
void    ddp_bind(const Ddp *ddp, Optimizer *o);
int     ddp_buckets(const Ddp *ddp);

#endif
