/* fp8_ranks.h: maxima of FP8 that are those of all ranks. All ranks call the
 * same; nothing happens unless the model delays its maxima */
#ifndef DIST_FP8_RANKS_H
#define DIST_FP8_RANKS_H

#include "dist/comm.h"
#include "model/model.h"

/* keeps the model's maxima in the communicator's memory, until fp8_ranks_leave */
void fp8_ranks_join(Model *m, Comm *c);
void fp8_ranks_leave(Model *m);
/* before an update: the compute queue waits for the maxima of all ranks */
void fp8_ranks_gather(Model *m, Comm *c);

#endif
