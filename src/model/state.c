#include "model/state.h"

#include <assert.h>

Array temporary(Model *m, size_t n, Type type, const char *what)
{
	return array_new(m->device, n, type, MEM_TEMPORARY, what);
}

Array activation(Model *m, size_t n, OpKind kind, const char *what)
{
	return array_new(m->device, n, m->policy->op[kind].output, MEM_ACTIVATION,
		what);
}

Array statistic(Model *m, size_t n, const char *what)
{
	return array_new(m->device, n, TYPE_REAL, MEM_ACTIVATION, what);
}

void array_drop(Model *m, Array *a)
{
	device_free(m->device, a->at);
	a->at = NULL;
}

Array cast_if_needed(Model *m, Array x, size_t n, Type type)
{
	if (m->ops->reads(m->device, x.type, type))
		return (Array){ x.at, type };
	Array copy = temporary(m, n, type, "cast");
	m->ops->cast(m->device, copy, x, n);
	return copy;
}

void release_cast(Model *m, Array *copy, Array x)
{
	if (copy->at != x.at)
		array_drop(m, copy);
}

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

// gather rows and scatter sums of a group
size_t own_tokens(const Model *m)
{
	return m->B * m->T / (m->group ? m->group->ranks : 1);
}

Array own_rows(const Model *m, Array x)
{
	if (m->group == NULL || x.at == NULL)
		return x;
	return array_part(m->device, x, m->group->rank * own_tokens(m)
		* m->shape.d_model);
}

// start and join collectives of rows
static void start_group_op(Model *m, GroupKind kind, Array x, const char *what,
	GroupSlot slot)
{
	GroupOp op = { kind, x, m->B * m->T * m->shape.d_model, what };
	if (m->group)
		m->group->start(m->group->self, &op, slot);
}

void start_gather(Model *m, Array x, const char *what, GroupSlot slot)
{
	start_group_op(m, GROUP_GATHER, x, what, slot);
}

void start_scatter(Model *m, Array x, const char *what, GroupSlot slot)
{
	start_group_op(m, GROUP_SCATTER, x, what, slot);
}

void join_group(Model *m, GroupSlot slot)
{
	if (m->group)
		m->group->join(m->group->self, slot);
}

void gather_rows(Model *m, Array x, const char *what)
{
	start_gather(m, x, what, SLOT_NOW);
	join_group(m, SLOT_NOW);
}

void scatter_sums(Model *m, Array x, const char *what)
{
	start_scatter(m, x, what, SLOT_NOW);
	join_group(m, SLOT_NOW);
}

// keep the rank's rows of the embedding
Array keep_own_sums(Model *m, Array embedded)
{
	size_t n = own_tokens(m) * m->shape.d_model;
	if (m->group == NULL)
		return embedded;
	scatter_sums(m, embedded, "embedding");
	Array own = activation(m, n, OP_EMBEDDING, "embedding");
	m->ops->cast(m->device, own, own_rows(m, embedded), n);
	array_drop(m, &embedded);
	return own;
}

// compute the loss from the vocabularies of a group
void loss_of_group(Model *m, Array losses, Array dlogits, Array logits,
	const int32_t *targets, double scale, size_t n)
{
	const RankGroup *g = m->group;
	size_t V = m->shape.vocab;
	Array terms = temporary(m, g->ranks * 3 * n, TYPE_REAL, "terms of the loss");
	m->ops->partial_cross_entropy(m->device,
		array_part(m->device, terms, g->rank * 3 * n), logits, targets, n, V);
	group_collective(g, (GroupOp){ GROUP_GATHER, terms, g->ranks * 3 * n,
		"terms of the loss" });
	m->ops->joined_cross_entropy(m->device, losses, dlogits, logits, terms,
		g->ranks, targets, scale, n, V);
	array_drop(m, &terms);
}
