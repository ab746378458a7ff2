/* update_types.h: what an update of the weights takes */
#ifndef OPS_UPDATE_TYPES_H
#define OPS_UPDATE_TYPES_H

#include "base/real.h"

/* the scalars of one step of AdamW. They lie in the device's memory, so that a
 * captured step can be launched again with other values */
typedef struct AdamWStep {
	/* keep: 1 - lr decay; rate: lr sqrt(1 - beta2^t) / (1 - beta1^t), at step
	 * t */
	real keep, rate;
	real beta1, beta2, one_minus_beta1, one_minus_beta2, eps;
	real unscale;                   /* gradients are multiplied by it */
} AdamWStep;
/* the scalars of one step of SGD; momentum is read only where there is a
 * velocity */
typedef struct SgdStep {
	real rate, momentum, unscale;
} SgdStep;

#endif
