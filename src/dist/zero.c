#include "dist/zero.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "dist/fp8_ranks.h"
#include "dist/zero_step.h"
#include "model/fp8.h"

// place weights and masters
static Type read_type(const Zero *z, int k)
{
	const Model *m = z->m;
	Type type = m->policy->op[OP_LINEAR].input;
	return m->fused && k > 0 && !m->ops->reads(m->device, m->policy->parameter,
		type) ? type : m->policy->parameter;
}

static bool in_place(const Zero *z, int k)
{
	return z->settings.stage < 3 && read_type(z, k) == z->m->policy->parameter;
}

// allocate slots and shards
/* memory that the groups k, k + slots, ... use in turn */
static void *new_slot(Zero *z, int k, int slots, Type (*type)(const Zero *, int),
	Category category, const char *what)
{
	const Backend *b = z->device->backend;
	size_t most = 0, width = b->width(FP32);
	for (; k < z->map.ngroups; k += slots) {
		size_t nbytes = z->groups[k].n * b->width(type(z, k));
		most = nbytes > most ? nbytes : most;
	}
	return most ? comm_array(z->comm, (most + width - 1) / width, FP32, category,
		what).at : NULL;
}

static bool low_apart(const Zero *z, int k)
{
	return z->settings.stage == 3 && read_type(z, k) != z->m->policy->parameter;
}

// place the weights of each group
static void place_weights(Zero *z)
{
	int slots = z->settings.stage == 3 ? z->settings.prefetch + 1
		: z->map.ngroups;
	for (int k = 0; k < z->map.ngroups; k++) {
		ZeroGroup *g = &z->groups[k];
		void *at = k < slots ? new_slot(z, k, slots, read_type, MEM_PARAMETER,
			"gathered weights") : z->groups[k - slots].weights.at;
		g->weights = (Array){ at, read_type(z, k) };
		if (k < slots && z->settings.stage == 3)
			z->slots[k] = (WeightSlot){ .at = at };
	}
}

// place the shards of masters
/* one array for the shards of all groups of which `apart` is true */
static Array new_shards(const Zero *z, bool apart(const Zero *, int), Type type,
	const char *what)
{
	size_t n = 0;
	for (int k = 0; k < z->map.ngroups; k++)
		n += apart(z, k) ? z->groups[k].shard : 0;
	return n ? array_new(z->device, n, type, MEM_PARAMETER, what)
		: (Array){ NULL, type };
}

static bool master_apart(const Zero *z, int k)
{
	return !in_place(z, k);
}

static Array take_shard(const Zero *z, Array *next, const ZeroGroup *g)
{
	Array own = *next;
	*next = array_part(z->device, own, g->shard);
	return own;
}

static void place_masters(Zero *z)
{
	const Policy *p = z->m->policy;
	z->masters = new_shards(z, master_apart, p->parameter, "masters");
	z->lows = new_shards(z, low_apart, p->op[OP_LINEAR].input,
		"shards as they are read");
	Array master = z->masters, low = z->lows;
	for (int k = 0; k < z->map.ngroups; k++) {
		ZeroGroup *g = &z->groups[k];
		g->master = in_place(z, k) ? own_part(z, g, g->weights)
			: take_shard(z, &master, g);
		g->low = low_apart(z, k) ? take_shard(z, &low, g)
			: z->settings.stage == 3 ? g->master
			: own_part(z, g, g->weights);
		z->ops->fill(z->device, g->master, 0, g->shard);
	}
}

// place gradients
static Type gradient_type(const Zero *z, int k)
{
	return policy_gradient(z->m->policy, z->settings.wire);
}

static Type wire_type(const Zero *z, int k)
{
	return z->settings.wire;
}

static bool casts(const Zero *z)
{
	return gradient_type(z, 0) != z->settings.wire;
}

static Array new_gradients(Zero *z, size_t n)
{
	Array a = array_new(z->device, n, gradient_type(z, 0), MEM_GRADIENT,
		"gradients");
	z->ops->fill(z->device, a, 0, n);
	return a;
}

// place the gradients of each group
static size_t largest_of(const Zero *z, int k, int slots)
{
	size_t most = 0;
	for (; k < z->map.ngroups; k += slots)
		most = z->groups[k].n > most ? z->groups[k].n : most;
	return most;
}

static void place_gradients(Zero *z)
{
	bool apart = sums_apart(z);
	int slots = apart ? GRADIENT_SLOTS : z->map.ngroups;
	size_t first = largest_of(z, 0, GRADIENT_SLOTS) / z->map.ranks;
	z->summed = z->settings.early ? first + largest_of(z, 1, GRADIENT_SLOTS)
		/ z->map.ranks : z->map.extent / z->map.ranks;
	// allocate the sums of gradients
	if (z->settings.exchange) {
		z->parts = comm_parts(z->comm, z->summed + z->map.gains,
			z->settings.wire, MEM_GRADIENT, "gradients of all ranks");
		z->sums = z->parts.at[z->rank];
	} else if (apart) {
		z->sums = array_new(z->device, z->summed, z->settings.wire,
			MEM_GRADIENT, "sums of gradients");
	}
	// let groups take turns in gradient slots
	for (int k = 0; k < z->map.ngroups; k++) {
		ZeroGroup *g = &z->groups[k], *same = k < slots ? NULL : g - slots;
		g->wire = same ? same->wire : (Array){ new_slot(z, k, slots, wire_type,
			MEM_GRADIENT, "gradients on the wire"), z->settings.wire };
		g->home = same ? same->home : casts(z)
			? new_gradients(z, largest_of(z, k, slots)) : g->wire;
		g->gradients = g->home;
		g->sum = apart ? array_part(z->device, z->sums, z->settings.early
			? k % GRADIENT_SLOTS * first : z->map.groups[k].offset
			/ z->map.ranks) : own_part(z, g, g->wire);
	}
}

// place the gains and their gradients
static void place_gains(Zero *z)
{
	ZeroGroup *g = &z->gains;
	g->n = g->shard = z->map.gains;
	g->weights = g->master = array_new(z->device, g->n, z->m->policy->parameter,
		MEM_PARAMETER, "gains");
	g->wire = z->settings.exchange
		? array_part(z->device, z->sums, z->summed)
		: comm_array(z->comm, g->n, z->settings.wire, MEM_GRADIENT,
			"gradients of gains");
	g->gradients = casts(z) ? new_gradients(z, g->n) : g->wire;
	g->sum = g->wire;
}

// let gradients accumulate
void zero_sync(Zero *z, bool on)
{
	assert(!z->settings.early);
	if (!on && sums_apart(z) && z->whole.at == NULL)
		zero_point_gradients(z, new_gradients(z, z->map.extent));
	z->sync = on;
}

// draw the own shards
static void draw_shards(Zero *z)
{
	Model *m = z->m;
	for (int u = 0, i = 0; u < shape_nunits(&m->shape); u++)
		for (int end = i + shape_unit(&m->shape, u).count; i < end; i++) {
			// draw what this rank owns of a parameter
			const ZeroGroup *g = &z->groups[z->map.of_unit[u]];
			size_t place = shard_map_place(&z->map, i);
			if (m->params[i].about.gain) {
				model_draw(m, array_part(z->device, z->gains.master, place), i,
					0, m->params[i].about.count);
				continue;
			}
			ShardRange r = shard_map_range(&z->map, i, z->rank);
			if (r.begin < r.end)
				model_draw(m, array_part(z->device, g->master,
					place + r.begin - z->rank * g->shard), i, r.begin,
					r.end - r.begin);
		}
}

// draw the own shards
void zero_weights_changed(Zero *z)
{
	device_wait(z->device, COMPUTE, z->last);
	for (int k = 0; k < z->map.ngroups; k++) {
		const ZeroGroup *g = &z->groups[k];
		if (g->low.at != g->master.at)
			z->ops->cast(z->device, g->low, g->master, g->shard);
	}
	zero_gather(z);
	fp8_weights_changed(z->m);
}

// list what the optimizer updates
/* the rank's part of a unit, counted from the beginning of its group's shard */
static ShardRange own_of_unit(const Zero *z, int unit)
{
	Unit u = shape_unit(&z->m->shape, unit);
	const ZeroGroup *g = &z->groups[z->map.of_unit[unit]];
	ShardRange own = { 0, 0 };
	for (int i = u.first; i < u.first + u.count; i++) {
		if (z->m->params[i].about.gain)
			continue;
		ShardRange r = shard_map_range(&z->map, i, z->rank);
		size_t at = shard_map_place(&z->map, i) - z->rank * g->shard;
		if (r.begin == r.end)
			continue;
		own = (ShardRange){ own.end ? own.begin : at + r.begin, at + r.end };
	}
	return own;
}

static int list_spans(Zero *z, Span *spans)
{
	Device *d = z->device;
	int n = 0;
	for (int u = 0; u < shape_nunits(&z->m->shape); u++) {
		const ZeroGroup *g = &z->groups[z->map.of_unit[u]];
		ShardRange own = own_of_unit(z, u);
		Array compute = { NULL, g->low.type };
		if (own.begin == own.end)
			continue;
		if (g->low.at != g->master.at)
			compute = array_part(d, g->low, own.begin);
		z->groups[z->map.of_unit[u]].spans++;
		spans[n++] = (Span){ array_part(d, g->master, own.begin), compute,
			array_part(d, g->sum, own.begin), own.end - own.begin };
	}
	spans[n++] = (Span){ z->gains.master, { NULL, FP32 }, z->gains.sum,
		z->gains.n };
	return n;
}

// make the optimizer of the shards
static void make_optimizer(Zero *z, const OptimizerKind *kind,
	OptimizerSettings settings)
{
	Optimizer *o = &z->optimizer;
	z->spans = need(calloc(shape_nunits(&z->m->shape) + 1, sizeof *z->spans));
	int n = list_spans(z, z->spans);
	*o = optimizer_new(z->device, kind, settings, z->spans, n, z->m->fused);
	o->spans = z->spans;
	o->nspans = n;
	o->early = z->settings.early ? n - 1 : 0;
	o->sums = z->parts;
	o->gradients = z->sums;
	o->squares = comm_array(z->comm, NORM_ELEMENTS, FP32, MEM_OPTIMIZER,
		"squared norm");
	z->counted = z->rank == 0 ? n : n - 1;
}

// make and free a sharded model
static void check_settings(const Model *m, const ZeroSettings *s)
{
	Type linear = m->policy->op[OP_LINEAR].input;
	assert(m->weights.at == NULL && "the model is bare");
	assert(s->stage >= 1 && s->stage <= 3);
	assert(s->prefetch >= 0 && s->prefetch <= MOST_PREFETCH);
	assert(s->wire == FP32 || s->wire == BF16);
	assert(m->fused || !s->exchange);
	assert(!s->early || s->stage == 2);
	// refuse policies that the wire does not carry
	if (m->policy->op[OP_LINEAR].output == FP16)
		usage_error("precision %s: sharded data parallelism does not scale the "
			"loss, expected fp32 or bf16", m->policy->name);
	if (m->fp8 && s->stage == 3)
		usage_error("precision %s: weights in FP8 stay on every rank, which stage 3 "
			"(FSDP) is to avoid; expected stage 1 or 2", m->policy->name);
	if (linear == TF32 && m->fused && !m->ops->reads(m->device,
		m->policy->parameter, linear))
		usage_error("precision %s: gathers carry no tf32 where matmuls read "
			"copies, expected fp32 or bf16", m->policy->name);
}

// make a sharded model
Zero *zero_new(Model *m, Comm *c, const ZeroSettings *settings,
	const OptimizerKind *kind, OptimizerSettings optimizer)
{
	Zero *z = need(calloc(1, sizeof *z));
	double most = settings->bucket_mb * 1e6 / type_size(settings->wire);
	check_settings(m, settings);
	if (settings->exchange && !comm_exchanges(c))
		die("%d ranks on %s cannot exchange gradients", comm_ranks(c),
			comm_transport(c));
	*z = (Zero){ .m = m, .device = m->device, .ops = m->ops, .comm = c,
		.settings = *settings, .rank = comm_rank(c), .pending = -1,
		.sync = true, .prefetcher = prefetcher_new(settings->prefetch,
			zero_gather_into_slot, z) };
	// cut the model into groups
	z->map = shard_map_new(&m->shape, comm_ranks(c), most < m->extent
		? (size_t)most : m->extent);
	z->groups = need(calloc(z->map.ngroups, sizeof *z->groups));
	for (int k = 0; k < z->map.ngroups; k++) {
		z->groups[k].n = z->map.groups[k].extent;
		z->groups[k].shard = z->groups[k].n / z->map.ranks;
	}
	// place all arrays, and draw the weights
	place_weights(z);
	place_masters(z);
	place_gradients(z);
	place_gains(z);
	zero_point_parameters(z);
	draw_shards(z);
	make_optimizer(z, kind, optimizer);
	zero_weights_changed(z);
	m->share = 1.0 / z->map.ranks;
	fp8_ranks_join(m, c);
	m->hooks = zero_hooks(z);
	return z;
}

// free a sharded model
void zero_free(Zero **zero)
{
	Zero *z = *zero;
	Device *d = z->device;
	/* memory given back is used again from here on. Arrays that travel are the
	 * communicator's, and stay */
	device_wait(d, COMPUTE, z->last);
	fp8_ranks_leave(z->m);
	z->m->hooks = (Hooks){ 0 };
	z->m->share = 1;
	model_view_params(z->m);
	optimizer_free(&z->optimizer);
	// free the engine's arrays
	for (int k = 0; k < GRADIENT_SLOTS || (k < z->map.ngroups
		&& !sums_apart(z)); k++)
		if (casts(z) && k < z->map.ngroups)
			device_free(d, z->groups[k].home.at);
	if (casts(z))
		device_free(d, z->gains.gradients.at);
	void *const all[] = { z->gains.weights.at, z->masters.at, z->lows.at,
		z->settings.exchange ? NULL : z->sums.at, z->whole.at };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		device_free(d, all[i]);
	shard_map_free(&z->map);
	free(z->groups);
	prefetcher_free(&z->prefetcher);
	free(z->spans);
	free(z);
	*zero = NULL;
}

// free a sharded model
Optimizer *zero_optimizer(Zero *z)
{
	return &z->optimizer;
}

const ShardMap *zero_map(const Zero *z)
{
	return &z->map;
}

// list the pieces of a rank
static ZeroPiece piece_of(const Zero *z, int i, const ZeroGroup *g, ShardRange r,
	size_t in_shard, size_t in_state)
{
	const Optimizer *o = &z->optimizer;
	ZeroPiece p = { &z->m->params[i].about, r.begin, r.end - r.begin,
		z->m->params[i].about.gain, array_part(z->device, g->master, in_shard),
		{ { NULL, FP32 } } };
	for (int s = 0; s < MOST_STATES && o->state[s].at; s++)
		p.state[s] = array_part(z->device, o->state[s], in_state);
	return p;
}

int zero_pieces(const Zero *z, ZeroPiece *pieces)
{
	int n = 0, nparameters = shape_nparameters(&z->m->shape);
	size_t done = 0;
	device_wait(z->device, COMPUTE, z->last);
	// list the matrices' pieces
	for (int u = 0, i = 0; u < shape_nunits(&z->m->shape); u++) {
		const ZeroGroup *g = &z->groups[z->map.of_unit[u]];
		ShardRange own = own_of_unit(z, u);
		for (int end = i + shape_unit(&z->m->shape, u).count; i < end; i++) {
			if (z->m->params[i].about.gain)
				continue;
			ShardRange r = shard_map_range(&z->map, i, z->rank);
			size_t at = shard_map_place(&z->map, i) + r.begin
				- z->rank * g->shard;
			if (r.begin < r.end)
				pieces[n++] = piece_of(z, i, g, r, at, done + at - own.begin);
		}
		done += own.end - own.begin;
	}
	// list the gains
	for (int i = 0; i < nparameters; i++) {
		const Parameter *p = &z->m->params[i].about;
		size_t at = p->gain ? shard_map_place(&z->map, i) : 0;
		if (p->gain)
			pieces[n++] = piece_of(z, i, &z->gains, (ShardRange){ 0, p->count },
				at, done + at);
	}
	return n;
}

// read all weights
static Array gather_masters(Zero *z, int k)
{
	const ZeroGroup *g = &z->groups[k];
	Array all = array_new(z->device, g->n, g->master.type, MEM_TEMPORARY,
		"masters of all ranks");
	z->ops->cast(z->device, own_part(z, g, all), g->master, g->shard);
	device_wait(z->device, COMM, device_event(z->device, COMPUTE));
	z->last = comm_all_gather(z->comm, all, g->n, "masters", k);
	device_wait(z->device, COMPUTE, z->last);
	return all;
}

void zero_read_weights(Zero *z, real *host)
{
	Array all = { NULL, FP32 };
	for (int u = 0, i = 0, k = -1; u < shape_nunits(&z->m->shape); u++) {
		if (z->map.of_unit[u] != k) {
			k = z->map.of_unit[u];
			device_free(z->device, all.at);
			all = gather_masters(z, k);
		}
		for (int end = i + shape_unit(&z->m->shape, u).count; i < end; i++) {
			const Parameter *p = &z->m->params[i].about;
			array_read(z->device, host, array_part(z->device, p->gain
				? z->gains.master : all, shard_map_place(&z->map, i)), p->count);
			host += p->count;
		}
	}
	device_free(z->device, all.at);
}
