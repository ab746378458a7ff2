/* zero_step.h: what a sharded model does in a step */
#ifndef DIST_ZERO_STEP_H
#define DIST_ZERO_STEP_H

#include "dist/zero_state.h"

Hooks zero_hooks(Zero *z);
/* self: a Zero; gathers the weights of group k into its slot */
void  zero_gather_into_slot(void *self, int k);
/* gathers all weights anew, after this rank's masters and, in stages 1 and 2, its
 * part of the weights have changed */
void  zero_gather(Zero *z);
void  zero_point_parameters(Zero *z);
/* points the gradients into `whole`, one group after the other; whole.at NULL:
 * back to the groups' own memory */
void  zero_point_gradients(Zero *z, Array whole);

#endif
