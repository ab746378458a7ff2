#include "dist/zero_step.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "dist/fp8_ranks.h"

// point parameters at a sharded model's memory
static Array matmul_reads(const Zero *z, Array weights)
{
	const Model *m = z->m;
	if (!m->fused)
		return (Array){ NULL, weights.type };
	return (Array){ weights.at, m->policy->op[OP_LINEAR].input };
}

void zero_point_parameters(Zero *z)
{
	Model *m = z->m;
	for (int u = 0, i = 0; u < shape_nunits(&m->shape); u++)
		for (int end = i + shape_unit(&m->shape, u).count; i < end; i++) {
			// point one parameter at its group
			Param *p = &m->params[i];
			int k = z->map.of_unit[u];
			const ZeroGroup *g = p->about.gain ? &z->gains : &z->groups[k];
			size_t place = shard_map_place(&z->map, i);
			Array w = array_part(z->device, g->weights, place);
			p->weight = w;
			p->gradient = array_part(z->device, g->gradients, place);
			p->compute = p->about.gain || k == 0
				? (Array){ NULL, w.type } : matmul_reads(z, w);
			if (w.type != m->policy->parameter)
				p->weight.at = NULL;
		}
}

// point parameters at a sharded model's memory
void zero_point_gradients(Zero *z, Array whole)
{
	for (int k = 0; k < z->map.ngroups; k++)
		z->groups[k].gradients = whole.at ? array_part(z->device, whole,
			z->map.groups[k].offset) : z->groups[k].home;
	z->whole = whole;
	zero_point_parameters(z);
}

// gather weights in place
static void fill_with_nan(Zero *z, Array a, size_t n)
{
	if (z->settings.poison && n > 0)
		z->ops->fill(z->device, a, NAN, n);
}

static void fill_others_with_nan(Zero *z, const ZeroGroup *g)
{
	size_t before = z->rank * g->shard, end = before + g->shard;
	fill_with_nan(z, g->weights, before);
	if (end < g->n)
		fill_with_nan(z, array_part(z->device, g->weights, end), g->n - end);
}

static void gather_groups(Zero *z, int first, int n)
{
	for (int k = first; k < first + n; k++)
		fill_others_with_nan(z, &z->groups[k]);
	device_wait(z->device, COMM, device_event(z->device, COMPUTE));
	for (int k = first; k < first + n; k++) {
		ZeroGroup *g = &z->groups[k];
		z->last = g->gathered = comm_all_gather(z->comm, g->weights, g->n,
			"weights", k);
	}
}

// gather a group into its slot
static WeightSlot *slot_of(Zero *z, int k)
{
	return &z->slots[prefetcher_slot(&z->prefetcher, k)];
}

void zero_gather_into_slot(void *self, int k)
{
	Zero *z = self;
	ZeroGroup *g = &z->groups[k];
	WeightSlot *s = slot_of(z, k);
	if (z->settings.poison) {
		device_wait(z->device, COMPUTE, s->ready);
		fill_with_nan(z, g->weights, g->n);
	}
	device_wait(z->device, COMM, device_event(z->device, COMPUTE));
	device_copy(z->device, COMM, own_part(z, g, g->weights).at, g->low.at,
		g->shard * z->device->backend->width(g->low.type));
	s->ready = z->last = comm_all_gather(z->comm, g->weights, g->n, "weights", k);
}

// enter a group
static void enter_group(Zero *z, int k)
{
	prefetcher_visit(&z->prefetcher, k);
	device_wait(z->device, COMPUTE, slot_of(z, k)->ready);
}

// gather anew after an update
void zero_gather(Zero *z)
{
	if (z->settings.stage == 3)
		prefetcher_renew(&z->prefetcher);
	else
		gather_groups(z, 0, z->map.ngroups);
}

// reduce gradients to their owners
static void reduce_group(Zero *z, int k)
{
	ZeroGroup *g = &z->groups[k];
	Event *freed = &z->freed[k % GRADIENT_SLOTS];
	if (g->gradients.at != g->wire.at) {
		device_wait(z->device, COMPUTE, *freed);
		z->ops->cast(z->device, g->wire, g->gradients, g->n);
	}
	device_wait(z->device, COMM, device_event(z->device, COMPUTE));
	if (z->settings.exchange) {
		*freed = z->last = g->summed = comm_all_to_all(z->comm, g->wire, g->n,
			g->sum, "gradients", k);
		return;
	}
	z->last = comm_reduce_scatter(z->comm, g->wire, g->n, "gradients", k);
	if (z->settings.stage >= 2) {
		device_copy(z->device, COMM, g->sum.at, own_part(z, g, g->wire).at,
			g->shard * z->device->backend->width(g->wire.type));
		*freed = z->last = g->summed = device_event(z->device, COMM);
	}
}

static void reduce_gains(Zero *z)
{
	ZeroGroup *g = &z->gains;
	if (g->gradients.at != g->wire.at)
		z->ops->cast(z->device, g->wire, g->gradients, g->n);
	device_wait(z->device, COMM, device_event(z->device, COMPUTE));
	z->last = (z->settings.exchange ? comm_exchange : comm_all_reduce)(z->comm,
		g->wire, g->n, "gradients of gains", 0);
}

static void sum_squares(Zero *z)
{
	Optimizer *o = &z->optimizer;
	z->ops->fill(z->device, o->squares, 0, NORM_ELEMENTS);
	for (int i = 0; i < z->counted; i++)
		z->ops->add_squares(z->device, o->squares,
			optimizer_gradients(o, &z->spans[i]), z->spans[i].n);
	device_wait(z->device, COMM, device_event(z->device, COMPUTE));
	z->last = comm_all_reduce(z->comm, o->squares, NORM_ELEMENTS,
		"squared norm", 0);
	device_wait(z->device, COMPUTE, z->last);
}

// update a group in the backward pass
/* the one whose gradients are on their way */
static void update_pending(Zero *z)
{
	const Optimizer *o = &z->optimizer;
	int k = z->pending, first = 0;
	if (k < 0)
		return;
	assert(o->t > z->updated && o->settings.clip == 0);
	for (int j = 0; j < k; j++)
		first += z->groups[j].spans;
	device_wait(z->device, COMPUTE, z->groups[k].summed);
	for (int i = first; i < first + z->groups[k].spans; i++)
		optimizer_apply_one(o, o->spans, i, z->m->nonfinite);
	gather_groups(z, k, 1);
	z->pending = -1;
}

static void before_unit(void *self, int unit, bool backward)
{
	Zero *z = self;
	int k = z->map.of_unit[unit];
	ZeroGroup *g = &z->groups[k];
	const ShardGroup *about = &z->map.groups[k];
	if (z->settings.stage == 3) {
		if (unit == 0 && !backward)
			prefetcher_begin_pass(&z->prefetcher);
		if (unit > 0 || !backward || z->settings.prefetch > 0)
			enter_group(z, k);
	} else {
		device_wait(z->device, COMPUTE, g->gathered);
		g->gathered.n = 0;
	}
	// wait for the gradients' slot to be free
	if (backward && unit == about->first + about->count - 1
		&& sums_apart(z) && g->gradients.at == g->wire.at) {
		device_wait(z->device, COMPUTE, z->freed[k % GRADIENT_SLOTS]);
		fill_with_nan(z, g->gradients, g->n);
	}
}

// follow a step
static void after_unit(void *self, int unit, bool backward)
{
	Zero *z = self;
	int k = z->map.of_unit[unit];
	if (!backward || !z->sync)
		return;
	if (unit == 1)
		reduce_gains(z);
	if (unit != z->map.groups[k].first)
		return;
	if (z->settings.early)
		update_pending(z);
	reduce_group(z, k);
	z->pending = z->settings.early ? k : -1;
}

static void before_update(void *self)
{
	Zero *z = self;
	assert(z->sync && "the last pass of a step sums");
	update_pending(z);
	if (!z->compared)
		comm_check_order(z->comm);
	z->compared = true;
	device_wait(z->device, COMPUTE, z->last);
	fp8_ranks_gather(z->m, z->comm);
	if (z->optimizer.settings.clip > 0)
		sum_squares(z);
}

static void after_update(void *self)
{
	Zero *z = self;
	// give back the memory of accumulated gradients
	if (z->whole.at) {
		device_free(z->device, z->whole.at);
		zero_point_gradients(z, (Array){ NULL, FP32 });
	}
	// fill stale gradients with NaN
	for (int k = 0; k < z->map.ngroups && !sums_apart(z); k++)
		fill_with_nan(z, z->groups[k].gradients, z->groups[k].n);
	fill_with_nan(z, z->gains.gradients, z->gains.n);
	for (int r = 0; r < z->parts.n; r++)
		fill_with_nan(z, z->parts.at[r], z->summed + z->map.gains);
	z->updated = z->optimizer.t;
	if (!z->settings.early)
		zero_gather(z);
}

// follow a step
Hooks zero_hooks(Zero *z)
{
	return (Hooks){ .self = z, .before_unit = before_unit,
		.after_unit = after_unit, .before_update = before_update,
		.after_update = after_update };
}
