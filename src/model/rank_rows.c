#include "model/rank_rows.h"

#include "model/buffers.h"

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
