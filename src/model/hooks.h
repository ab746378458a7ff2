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

// declare calls of hooks, and who listens to all of them
typedef enum HookKind { BEFORE_UNIT, AFTER_UNIT, GRADIENT_READY, BEFORE_UPDATE,
	AFTER_UPDATE } HookKind;

typedef struct HookCall {
	HookKind kind;
	int first, count;                /* the unit, or the parameters */
	bool backward;
} HookCall;

typedef struct HookListener {
	void *self;
	void (*hear)(void *self, const HookCall *call);
} HookListener;

/* is there such a hook? */
bool  hooks_have(const Hooks *h, HookKind kind);
/* calls the hook, if there is one */
void  hooks_call(const Hooks *h, const HookCall *call);
/* hooks of the kinds for which `wanted` is true, each of which tells the
 * listener; it must outlast them */
Hooks hooks_heard_by(HookListener *listener,
	const bool wanted[AFTER_UPDATE + 1]);

#endif
