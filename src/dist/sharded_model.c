#include "dist/sharded_model.h"

#include <stdlib.h>

#include "base/error.h"

struct ShardedModel {
	Model *m;
	Hooks hooks;                     /* the model's before */
	HookListener listener;
	ShardedOptimizer *shares;
	Optimizer step;                  /* without kind */
	long last;                       /* step.t after the last step */
	Array *gradients;
};

// take a sharded step after the update
static void step_and_broadcast(ShardedModel *s)
{
	Model *m = s->m;
	for (int i = 0; i < shape_nparameters(&m->shape); i++)
		s->gradients[i] = m->params[i].gradient;
	if (s->step.t <= s->last)
		sharded_undo(s->shares);
	s->last = s->step.t;
	sharded_set(s->shares, 0, s->step.settings);
	sharded_step(s->shares, s->gradients, 1 / m->loss_scale, m->nonfinite);
}

// call the hooks that a model had
static void hear(void *self, const HookCall *call)
{
	ShardedModel *s = self;
	if (call->kind == AFTER_UPDATE)
		step_and_broadcast(s);
	hooks_call(&s->hooks, call);
}

// bind a sharded optimizer to a model
ShardedModel *sharded_model_new(Model *m, Comm *c, const OptimizerKind *kind,
	OptimizerSettings settings)
{
	ShardedModel *s = need(calloc(1, sizeof *s));
	int n = shape_nparameters(&m->shape);
	*s = (ShardedModel){ .m = m, .hooks = m->hooks,
		.shares = sharded_new(m->device, c, m->fused),
		.step = { .settings = settings, .device = m->device },
		.gradients = need(malloc(n * sizeof(Array))) };
	// add all parameters of the model as one group
	ShardedParam *params = need(calloc(n, sizeof *params));
	for (int i = 0; i < n; i++) {
		const Param *p = &m->params[i];
		params[i].span = (Span){ .weight = p->weight, .compute = p->compute,
			.n = p->about.count };
		if (p->compute.at == p->weight.at)
			params[i].span.compute.at = NULL;
	}
	sharded_add_group(s->shares, kind, settings, params, n);
	free(params);
	// take the hooks, and call those from before
	bool wanted[AFTER_UPDATE + 1];
	for (HookKind k = BEFORE_UNIT; k < AFTER_UPDATE; k++)
		wanted[k] = hooks_have(&s->hooks, k);
	wanted[AFTER_UPDATE] = true;
	s->listener = (HookListener){ s, hear };
	m->hooks = hooks_heard_by(&s->listener, wanted);
	m->hooks.spare_sms = s->hooks.spare_sms;
	return s;
}

// bind a sharded optimizer to a model
void sharded_model_free(ShardedModel **model)
{
	ShardedModel *s = *model;
	s->m->hooks = s->hooks;
	sharded_free(&s->shares);
	free(s->gradients);
	free(s);
	*model = NULL;
}

Optimizer *sharded_model_optimizer(ShardedModel *s)
{
	return &s->step;
}

const ShardedOptimizer *sharded_model_shares(const ShardedModel *s)
{
	return s->shares;
}

void sharded_model_set_step(ShardedModel *s, long t)
{
	s->step.t = s->last = t;
	sharded_set_steps(s->shares, t);
}
