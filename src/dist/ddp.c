#include "dist/ddp.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "dist/fp8_ranks.h"

struct Ddp {
	Model *m;
	Comm *comm;
	Reducer *reducer;
	bool sync;
};

// announce gradients to the reducer
static void announce(void *self, int first, int count)
{
	Ddp *ddp = self;
	if (ddp->sync)
		reducer_ready(ddp->reducer, first, count,
			device_event(ddp->m->device, COMPUTE));
}

static void finish(void *self)
{
	Ddp *ddp = self;
	if (ddp->sync)
		reducer_finish(ddp->reducer);
	fp8_ranks_gather(ddp->m, ddp->comm);
}

// announce all gradients, and finish
static void announce_all_and_finish(void *self)
{
	Ddp *ddp = self;
	announce(ddp, 0, shape_nparameters(&ddp->m->shape));
	finish(ddp);
}

// switch announcements, and bind sums
void ddp_sync(Ddp *ddp, bool on)
{
	ddp->sync = on;
}

void ddp_bind(const Ddp *ddp, Optimizer *o)
{
	o->sums = reducer_sums(ddp->reducer);
	o->gradients = reducer_gradients(ddp->reducer);
}

int ddp_buckets(const Ddp *ddp)
{
	return reducer_buckets(ddp->reducer);
}

// make a reducer for a model
static Reducer *reducer_of(const Model *m, Comm *c, const DdpSettings *settings)
{
	Type type = policy_gradient(m->policy, settings->wire);
	int n = shape_nparameters(&m->shape);
	GradientPart *parts = need(malloc(n * sizeof *parts));
	for (int i = 0; i < n; i++)
		parts[i] = (GradientPart){ m->params[i].about.offset,
			m->params[i].about.count, 1 };
	Reducer *r = reducer_new(m->device, c, settings, parts, n, m->extent, type);
	free(parts);
	return r;
}

// broadcast the weights of the first rank
static void broadcast_weights(Model *m, Comm *c)
{
	device_wait(m->device, COMM, device_event(m->device, COMPUTE));
	device_wait(m->device, COMPUTE,
		comm_broadcast(c, m->weights, m->extent, 0, "weights", 0));
	model_weights_changed(m);
}

// take the hooks of a model
Ddp *ddp_new(Model *m, Comm *c, const DdpSettings *settings)
{
	bool early = settings->kind == DDP_OVERLAP || settings->kind == DDP_BUCKETED;
	Ddp *ddp = need(malloc(sizeof *ddp));
	*ddp = (Ddp){ m, c, reducer_of(m, c, settings), true };
	fp8_ranks_join(m, c);
	broadcast_weights(m, c);
	model_set_gradients(m, reducer_gradients(ddp->reducer));
	m->share = 1.0 / comm_ranks(c);
	m->hooks = (Hooks){ .self = ddp,
		.gradient_ready = early ? announce : NULL,
		.before_update = early ? finish : announce_all_and_finish };
	return ddp;
}

// give the hooks back
void ddp_free(Ddp **ddp)
{
	Model *m = (*ddp)->m;
	fp8_ranks_leave(m);
	m->hooks = (Hooks){ 0 };
	m->share = 1;
	model_set_gradients(m, (Array){ NULL, m->policy->gradient });
	reducer_free(&(*ddp)->reducer);
	free(*ddp);
	*ddp = NULL;
}
