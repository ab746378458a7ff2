/* hooks.h: what whoever trains a model is told during a step. Pointers may be
 * NULL. A hook may queue work on either queue, make the compute queue wait, and
 * point parameters elsewhere. When a step is replayed, so are its hooks, and
 * gradient_ready comes with the end of its unit, or a collective before it */
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
	/* of the training step, around the optimizer */
	void (*before_update)(void *self);
	void (*after_update)(void *self);
} Hooks;

#endif
