#include "dist/sharded_optimizer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "dist/owners.h"

typedef struct OwnedParam {
	Span span;
	int owner;                       /* -1: frozen */
	size_t offset;                   /* owner: of its state in the group's */
	long t;                          /* steps that updated it */
	long last;                       /* of these the last, counted in all steps */
	Event updated;
} OwnedParam;

typedef struct OptimizerGroup {
	Optimizer own;                   /* without state where own.n is 0 */
	int first, count;                /* members */
} OptimizerGroup;

struct ShardedOptimizer {
	Device *device;
	Comm *comm;
	bool fused;
	OwnedParam *members;
	OptimizerGroup *groups;
	int nmembers, ngroups;
	size_t *loads;                   /* of each rank */
	long steps;
};

// open and close a sharded optimizer
ShardedOptimizer *sharded_new(Device *device, Comm *comm, bool fused)
{
	ShardedOptimizer *o = need(calloc(1, sizeof *o));
	o->device = device;
	o->comm = comm;
	o->fused = fused;
	o->loads = need(calloc(comm_ranks(comm), sizeof *o->loads));
	return o;
}

void sharded_free(ShardedOptimizer **optimizer)
{
	ShardedOptimizer *o = *optimizer;
	for (int i = 0; i < o->ngroups; i++)
		if (o->groups[i].own.n > 0)
			optimizer_free(&o->groups[i].own);
	free(o->members);
	free(o->groups);
	free(o->loads);
	free(o);
	*optimizer = NULL;
}

// is a parameter this rank's own?
static bool is_own(const ShardedOptimizer *o, const OwnedParam *p)
{
	return p->owner == comm_rank(o->comm);
}

// answer questions about groups and owners
OptimizerSettings sharded_settings(const ShardedOptimizer *o, int group)
{
	assert(group >= 0 && group < o->ngroups);
	return o->groups[group].own.settings;
}

void sharded_set(ShardedOptimizer *o, int group, OptimizerSettings settings)
{
	assert(group >= 0 && group < o->ngroups);
	o->groups[group].own.settings = settings;
}

int sharded_params(const ShardedOptimizer *o)
{
	return o->nmembers;
}

int sharded_owner(const ShardedOptimizer *o, int i)
{
	assert(i >= 0 && i < o->nmembers);
	return o->members[i].owner;
}

size_t sharded_load(const ShardedOptimizer *o, int rank)
{
	assert(rank >= 0 && rank < comm_ranks(o->comm));
	return o->loads[rank];
}

const OptimizerKind *sharded_kind(const ShardedOptimizer *o, int group)
{
	assert(group >= 0 && group < o->ngroups);
	return o->groups[group].own.kind;
}

// find and count the state of a parameter
Array sharded_state(const ShardedOptimizer *o, int i, int k)
{
	const OptimizerGroup *g = o->groups;
	assert(i >= 0 && i < o->nmembers && k >= 0 && k < MOST_STATES);
	while (i >= g->first + g->count)
		g++;
	Array all = g->own.state[k];
	if (!is_own(o, &o->members[i]) || all.at == NULL)
		return (Array){ 0 };
	return array_part(o->device, all, o->members[i].offset);
}

void sharded_set_steps(ShardedOptimizer *o, long t)
{
	for (OwnedParam *p = o->members; p < o->members + o->nmembers; p++)
		p->t = t;
}

// add a group of parameters
static void compare_groups(Comm *c, const ShardedParam *params, int n)
{
	int ranks = comm_ranks(c), rank = comm_rank(c);
	uint64_t *hashes = need(calloc(ranks, sizeof *hashes)), hash = HASH_START;
	for (int i = 0; i < n; i++) {
		uint64_t facts[] = { params[i].span.n, params[i].frozen };
		hash = hash_bytes(hash, facts, sizeof facts);
	}
	hashes[rank] = hash;
	comm_gather_host(c, hashes, sizeof *hashes);
	for (int r = 0; r < ranks; r++)
		if (hashes[r] != hash)
			die("rank %d adds other parameters to the optimizer than rank %d",
				r < rank ? rank : r, r < rank ? r : rank);
	free(hashes);
}

/* sets span and owner of the n members. Frozen parameters have no owner and are
 * no load */
static void choose_owners(ShardedOptimizer *o, OwnedParam *members,
	const ShardedParam *params, int n)
{
	size_t *counts = need(malloc(n * sizeof *counts));
	int *owners = need(malloc(n * sizeof *owners)), free_ones = 0;
	for (int i = 0; i < n; i++)
		if (!params[i].frozen)
			counts[free_ones++] = params[i].span.n;
	share_out(counts, free_ones, o->loads, comm_ranks(o->comm), owners);
	free_ones = 0;
	for (int i = 0; i < n; i++)
		members[i] = (OwnedParam){ .span = params[i].span,
			.owner = params[i].frozen ? -1 : owners[free_ones++] };
	free(counts);
	free(owners);
}

int sharded_add_group(ShardedOptimizer *o, const OptimizerKind *kind,
	OptimizerSettings settings, const ShardedParam *params, int n)
{
	assert(n > 0);
	compare_groups(o->comm, params, n);
	o->groups = grow(o->groups, o->ngroups, sizeof *o->groups);
	OptimizerGroup *g = &o->groups[o->ngroups];
	*g = (OptimizerGroup){ { .kind = kind, .settings = settings }, o->nmembers,
		n };
	for (int i = 0; i < n; i++)
		o->members = grow(o->members, o->nmembers++, sizeof *o->members);
	choose_owners(o, &o->members[g->first], params, n);
	// make the optimizer of the parameters that this rank owns
	Span *own = need(malloc(n * sizeof *own));
	size_t offset = 0;
	int nown = 0;
	for (OwnedParam *p = &o->members[g->first]; p < o->members + o->nmembers; p++)
		if (is_own(o, p)) {
			p->offset = offset;
			offset += p->span.n;
			own[nown++] = p->span;
		}
	if (nown > 0)
		g->own = optimizer_new(o->device, kind, settings, own, nown, o->fused);
	free(own);
	return o->ngroups++;
}

// update the parameters that the rank owns
static void clip_group(const ShardedOptimizer *o, const OptimizerGroup *g,
	const Array *gradients)
{
	Span *spans = need(malloc(g->count * sizeof *spans));
	int n = 0;
	for (int i = g->first; i < g->first + g->count; i++)
		if (o->members[i].owner >= 0 && gradients[i].at) {
			spans[n] = o->members[i].span;
			spans[n++].gradient = gradients[i];
		}
	optimizer_clip(&g->own, spans, n);
	free(spans);
}

static void update_member(ShardedOptimizer *o, const OptimizerGroup *g,
	OwnedParam *p, Array gradient, const int32_t *skip)
{
	Optimizer one = g->own;
	one.n = p->span.n;
	one.settings.clip = 0;
	for (int k = 0; k < MOST_STATES && one.state[k].at; k++)
		one.state[k] = array_part(o->device, one.state[k], p->offset);
	Span span = p->span;
	span.gradient = gradient;
	optimizer_apply(&one, &span, 1, skip);
	p->t++;
	p->last = o->steps;
	p->updated = device_event(o->device, COMPUTE);
}

/* updates the parameters that have had t steps */
static void update_together(ShardedOptimizer *o, OptimizerGroup *g, long t,
	const Array *gradients, double unscale, const int32_t *skip)
{
	g->own.t = t;
	optimizer_begin(&g->own, unscale);
	if (g->own.settings.clip > 0)
		clip_group(o, g, gradients);
	for (int i = g->first; i < g->first + g->count; i++) {
		OwnedParam *p = &o->members[i];
		if (is_own(o, p) && gradients[i].at && p->last < o->steps && p->t == t)
			update_member(o, g, p, gradients[i], skip);
	}
}

static void update_group(ShardedOptimizer *o, OptimizerGroup *g,
	const Array *gradients, double unscale, const int32_t *skip)
{
	for (int i = g->first; i < g->first + g->count; i++) {
		const OwnedParam *p = &o->members[i];
		if (is_own(o, p) && gradients[i].at && p->last < o->steps)
			update_together(o, g, p->t, gradients, unscale, skip);
	}
}

void sharded_undo(ShardedOptimizer *o)
{
	for (OwnedParam *p = o->members; p < o->members + o->nmembers; p++)
		if (p->last == o->steps && p->last > 0) {
			p->t--;
			p->last--;
		}
}

// broadcast the new weights
static void broadcast_weights(ShardedOptimizer *o, Event before)
{
	Device *d = o->device;
	Event last = before;
	// broadcast each parameter from its owner
	for (int i = 0; i < o->nmembers; i++) {
		const OwnedParam *p = &o->members[i];
		if (p->owner < 0)
			continue;
		bool updated = is_own(o, p) && p->last == o->steps;
		device_wait(d, COMM, updated ? p->updated : before);
		last = comm_broadcast(o->comm, p->span.weight, p->span.n, p->owner,
			"parameter", i);
	}
	device_wait(d, COMPUTE, last);
	// round the others' weights for the matmuls
	for (const OwnedParam *p = o->members; p < o->members + o->nmembers; p++) {
		const Span *s = &p->span;
		if (p->owner >= 0 && !is_own(o, p) && s->compute.at
			&& s->compute.at != s->weight.at)
			ops_for(d)->cast(d, s->compute, s->weight, s->n);
	}
}

// take a sharded step
void sharded_step(ShardedOptimizer *o, const Array *gradients, double unscale,
	const int32_t *skip)
{
	Event before = device_event(o->device, COMPUTE);
	o->steps++;
	for (int i = 0; i < o->ngroups; i++)
		update_group(o, &o->groups[i], gradients, unscale, skip);
	broadcast_weights(o, before);
}
