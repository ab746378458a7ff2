/* hooks.h: callbacks from the model to a trainer (DDP, ZeRO, FSDP) during a
 * step. Each may be NULL. A callback may queue work on either queue, make
 * the compute queue wait, and point parameters elsewhere. When a step is
 * replayed, so are its callbacks; then gradient_ready comes at the end of
 * its unit, or earlier, at a collective */
#ifndef MODEL_HOOKS_H
#define MODEL_HOOKS_H

#include <stdbool.h>

typedef struct Hooks {
	void *self;
	/* unit as in shape_unit */
	void (*before_unit)(void *self, int unit, bool backward);
	void (*after_unit)(void *self, int unit, bool backward);
	/* the gradients of `count` parameters from first on have been queued */
	void (*gradient_ready)(void *self, int first, int count);
	/* multiprocessors of a GPU that the backward pass leaves to collectives */
	int spare_sms;
	/* calls of the training step, around the optimizer */
	void (*before_update)(void *self);
	void (*after_update)(void *self);
} Hooks;

#endif
