/* zero_step.h: what a sharded model does in a step */
#ifndef DIST_ZERO_STEP_H
#define DIST_ZERO_STEP_H

#include "dist/zero_state.h"

Hooks zero_hooks(Zero *z);
/* after the masters of the rank and, in stages 1 and 2, its part of the weights
 * have changed */
void  zero_gather(Zero *z);
void  zero_point_parameters(Zero *z);
/* to `whole`, one group after the other; at NULL: home */
void  zero_point_gradients(Zero *z, Array whole);

#endif
