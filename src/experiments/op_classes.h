/* op_classes.h: the time of a step on the fused path, by class of operation */
#ifndef EXPERIMENTS_OP_CLASSES_H
#define EXPERIMENTS_OP_CLASSES_H

#include "ops/ops.h"

enum { LINEAR, ATTENTION, ELEMENTWISE, OPTIMIZER, NCLASSES };

/* the same operations, which take stamps; of one model at a time */
Ops  instrument(const Ops *ops);
/* of the last step, which is over */
void sum_classes(Device *d, double ms[NCLASSES]);

#endif
