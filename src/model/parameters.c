#include "model/parameters.h"

#include <assert.h>

#include "model/buffers.h"

// find weights and gradients, call hooks
Array model_weight(const Model *m, int i)
{
	return m->params[i].weight;
}

Array model_gradient(const Model *m, int i)
{
	assert(m->params[i].gradient.at);
	return m->params[i].gradient;
}

void enter_unit(Model *m, int unit, bool backward)
{
	if (m->hooks.before_unit)
		m->hooks.before_unit(m->hooks.self, unit, backward);
}

void leave_unit(Model *m, int unit, bool backward)
{
	if (m->hooks.after_unit)
		m->hooks.after_unit(m->hooks.self, unit, backward);
}

void take_gradient(Model *m, int i, Array *addend, double beta)
{
	size_t n = m->params[i].about.count;
	Array sum = model_gradient(m, i);
	if (beta == 0)
		m->ops->cast(m->device, sum, *addend, n);
	else
		m->ops->add(m->device, sum, sum, *addend, n);
	array_drop(m, addend);
	announce_gradients(m, i, 1);
}

void announce_gradients(Model *m, int first, int count)
{
	if (m->hooks.gradient_ready)
		m->hooks.gradient_ready(m->hooks.self, first, count);
}
