#include "model/hooks.h"

#include <stddef.h>

// call a hook
bool hooks_have(const Hooks *h, HookKind kind)
{
	const bool have[] = { [BEFORE_UNIT] = h->before_unit,
		[AFTER_UNIT] = h->after_unit, [GRADIENT_READY] = h->gradient_ready,
		[BEFORE_UPDATE] = h->before_update, [AFTER_UPDATE] = h->after_update };
	return have[kind];
}

void hooks_call(const Hooks *h, const HookCall *c)
{
	if (!hooks_have(h, c->kind))
		return;
	switch (c->kind) {
	case BEFORE_UNIT: h->before_unit(h->self, c->first, c->backward); break;
	case AFTER_UNIT: h->after_unit(h->self, c->first, c->backward); break;
	case GRADIENT_READY: h->gradient_ready(h->self, c->first, c->count); break;
	case BEFORE_UPDATE: h->before_update(h->self); break;
	case AFTER_UPDATE: h->after_update(h->self);
	}
}

// tell a listener of each call
static void tell(void *listener, HookCall call)
{
	const HookListener *l = listener;
	l->hear(l->self, &call);
}

static void before_unit(void *l, int unit, bool backward)
{
	tell(l, (HookCall){ BEFORE_UNIT, unit, 1, backward });
}

static void after_unit(void *l, int unit, bool backward)
{
	tell(l, (HookCall){ AFTER_UNIT, unit, 1, backward });
}

static void gradient_ready(void *l, int first, int count)
{
	tell(l, (HookCall){ GRADIENT_READY, first, count, true });
}

static void before_update(void *l)
{
	tell(l, (HookCall){ .kind = BEFORE_UPDATE });
}

static void after_update(void *l)
{
	tell(l, (HookCall){ .kind = AFTER_UPDATE });
}

Hooks hooks_heard_by(HookListener *l, const bool wanted[AFTER_UPDATE + 1])
{
	return (Hooks){ .self = l,
		.before_unit = wanted[BEFORE_UNIT] ? before_unit : NULL,
		.after_unit = wanted[AFTER_UNIT] ? after_unit : NULL,
		.gradient_ready = wanted[GRADIENT_READY] ? gradient_ready : NULL,
		.before_update = wanted[BEFORE_UPDATE] ? before_update : NULL,
		.after_update = wanted[AFTER_UPDATE] ? after_update : NULL };
}
