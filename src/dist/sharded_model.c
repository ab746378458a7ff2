#include "dist/sharded_model.h"

#include <stdlib.h>

#include "base/error.h"

struct ShardedModel {
	Model *m;
	Hooks hooks;                     /* the model's before */
	ShardedOptimizer *shares;
	Optimizer step;                  /* without kind */
	long last;                       /* step.t after the last step */
	Array *gradients;
};

// call the hooks that a model had
static void before_unit(void *self, int unit, bool backward)
{
	const Hooks *h = &((ShardedModel *)self)->hooks;
	h->before_unit(h->self, unit, backward);
}

static void after_unit(void *self, int unit, bool backward)
{
	const Hooks *h = &((ShardedModel *)self)->hooks;
	h->after_unit(h->self, unit, backward);
}

static void gradient_ready(void *self, int first, int count)
{
	const Hooks *h = &((ShardedModel *)self)->hooks;
	h->gradient_ready(h->self, first, count);
}

static void before_update(void *self)
{
	const Hooks *h = &((ShardedModel *)self)->hooks;
	h->before_update(h->self);
}

// take a sharded step after the update
static void step_and_broadcast(void *self)
{
	ShardedModel *s = self;
	Model *m = s->m;
	for (int i = 0; i < shape_nparameters(&m->shape); i++)
		s->gradients[i] = m->params[i].gradient;
	if (s->step.t <= s->last)
		sharded_undo(s->shares);
	s->last = s->step.t;
	sharded_set(s->shares, 0, s->step.settings);
	sharded_step(s->shares, s->gradients, 1 / m->loss_scale, m->nonfinite);
	if (s->hooks.after_update)
		s->hooks.after_update(s->hooks.self);
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
	m->hooks = (Hooks){ .self = s, .spare_sms = s->hooks.spare_sms,
		.before_unit = s->hooks.before_unit ? before_unit : NULL,
		.after_unit = s->hooks.after_unit ? after_unit : NULL,
		.gradient_ready = s->hooks.gradient_ready ? gradient_ready : NULL,
		.before_update = s->hooks.before_update ? before_update : NULL,
		.after_update = step_and_broadcast };
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
