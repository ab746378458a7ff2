/* tensor.h: tensor and sequence parallelism; each rank has a part of a block */
#ifndef DIST_TENSOR_H
#define DIST_TENSOR_H

#include "dist/comm.h"
#include "model/rank_group.h"

/* the ranks of a communicator, as model_new_part takes them; stays where it is,
 * with the communicator, until the model is freed */
typedef struct TensorGroup {
	RankGroup group;
	Device *device;
	Comm *comm;
	Event ends[GROUP_SLOTS];
} TensorGroup;

void tensor_group(TensorGroup *t, Device *device, Comm *comm);

#endif
