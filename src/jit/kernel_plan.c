#include "jit/kernel_plan.h"

#include <assert.h>
#include <string.h>

// find levels
static Level index_level(const KernelPlan *p, const Index *x)
{
	Level level = LEVEL_ALL;
	for (int k = 0; k < x->n; k++) {
		bool row = p->C > 0 && x->term[k].div % p->C == 0;
		if (!row)
			return LEVEL_ELEMENT;
		level = LEVEL_ROW;
	}
	return level;
}

static Level higher_level(Level a, Level b)
{
	return a > b ? a : b;
}

static void find_levels(KernelPlan *p)
{
	for (int v = 0; v < p->g.nnodes; v++) {
		const Node *node = &p->g.nodes[v];
		Level level = node->kind == FOLDED ? LEVEL_ROW : LEVEL_ALL;
		if (node->kind == LOAD)
			level = higher_level(index_level(p, &node->from.index),
				node->from.ints ? index_level(p, &node->from.ints_index)
				: LEVEL_ALL);
		else if (node->kind == COMPARISON)
			level = higher_level(index_level(p, &node->compare.at),
				index_level(p, &node->compare.than));
		else if (node->kind != FOLDED)
			for (int k = 0; k < node->n; k++)
				level = higher_level(level, p->level[node->in[k]]);
		p->level[v] = level;
	}
}

// find what is live
static uint64_t node_bit(int v)
{
	return (uint64_t)1 << v;
}

/* the nodes of the set and all that they depend on; if stop, operands of folds
 * are not followed */
static uint64_t closure(const KernelPlan *p, uint64_t set, bool stop)
{
	for (int v = p->g.nnodes; v-- > 0;) {
		const Node *node = &p->g.nodes[v];
		if (!plan_has(set, v) || (stop && node->kind == FOLDED))
			continue;
		for (int k = 0; k < node->n; k++)
			set |= node_bit(node->in[k]);
	}
	return set;
}

static void find_live(KernelPlan *p)
{
	for (int s = 0; s < p->g.nstores; s++)
		if (!p->g.stores[s].dead)
			p->live |= node_bit(p->g.stores[s].node);
	p->live = closure(p, p->live, false);
	for (int s = 0; s < p->g.nstores; s++)
		p->columns |= p->g.stores[s].columns && !p->g.stores[s].dead;
}

static bool row_store(const KernelPlan *p, const Store *s)
{
	return p->shape != FLAT && !s->columns
		&& index_level(p, &s->to.index) < LEVEL_ELEMENT;
}

/* the first loop in which node v's value is known */
static int stage_of(const KernelPlan *p, int v)
{
	return p->g.nodes[v].stage + (p->g.nodes[v].kind == FOLDED);
}

static void find_store_loops(KernelPlan *p)
{
	p->nloops = 0;
	for (int v = 0; v < p->g.nnodes; v++)
		if (plan_has(p->live, v) && p->g.nodes[v].kind == FOLDED
			&& p->g.nodes[v].stage >= p->nloops)
			p->nloops = p->g.nodes[v].stage + 1;
	for (int s = 0; s < p->g.nstores; s++) {
		const Store *made = &p->g.stores[s];
		p->store_loop[s] = row_store(p, made) ? -1 : stage_of(p, made->node);
		if (!made->dead && p->store_loop[s] >= p->nloops)
			p->nloops = p->store_loop[s] + 1;
	}
	for (int s = 0; s < p->g.nstores && p->shape == LOOPED_ROW; s++)
		if (p->store_loop[s] >= 0)
			p->store_loop[s] = p->nloops - 1;
}

// find the loop of each node
static bool in_loops(const KernelPlan *p, int v)
{
	NodeKind kind = p->g.nodes[v].kind;
	return plan_has(p->live, v) && p->level[v] == LEVEL_ELEMENT
		&& kind != FOLDED && kind != CONSTANT;
}

/* first[v]: the first loop that needs node v; nloops: none does */
static void first_needed(const KernelPlan *p, int first[MOST_NODES])
{
	for (int v = 0; v < p->g.nnodes; v++)
		first[v] = p->nloops;
	for (int s = 0; s < p->g.nstores; s++)
		if (!p->g.stores[s].dead && p->store_loop[s] >= 0
			&& p->store_loop[s] < first[p->g.stores[s].node])
			first[p->g.stores[s].node] = p->store_loop[s];
	for (int v = p->g.nnodes; v-- > 0;) {
		const Node *node = &p->g.nodes[v];
		if (!plan_has(p->live, v) || (node->kind != FOLDED && !in_loops(p, v)))
			continue;
		int loop = node->kind == FOLDED ? node->stage : first[v];
		for (int k = 0; k < node->n; k++)
			if (loop < first[node->in[k]])
				first[node->in[k]] = loop;
	}
}

// let stores wait for later loads of the same element
/* returns whether a store was moved to a later loop */
static bool wait_for_loads(KernelPlan *p, const int first[MOST_NODES])
{
	bool moved = false;
	for (int s = 0; s < p->g.nstores; s++)
		for (int v = 0; v < p->g.nnodes; v++) {
			const Node *node = &p->g.nodes[v];
			if (p->g.stores[s].dead || p->store_loop[s] < 0
				|| node->kind != LOAD || !in_loops(p, v)
				|| first[v] <= p->store_loop[s]
				|| !access_same(&node->from, &p->g.stores[s].to))
				continue;
			p->store_loop[s] = first[v];
			moved = true;
		}
	return moved;
}

// assign nodes to loops until no store moves
static void find_loops(KernelPlan *p)
{
	int first[MOST_NODES];
	do
		first_needed(p, first);
	while (wait_for_loads(p, first));
	for (int v = 0; v < p->g.nnodes; v++)
		if (in_loops(p, v) && first[v] < p->nloops)
			p->loop[first[v]] |= node_bit(v);
}

// find what is held
/* the nodes that the loop's formulas, folds and stores read */
static uint64_t read_in(const KernelPlan *p, int loop)
{
	uint64_t read = 0;
	for (int v = 0; v < p->g.nnodes; v++) {
		const Node *node = &p->g.nodes[v];
		bool folds = node->kind == FOLDED && plan_has(p->live, v)
			&& node->stage == loop;
		for (int k = 0; k < node->n && (folds || plan_has(p->loop[loop], v)); k++)
			read |= node_bit(node->in[k]);
	}
	for (int s = 0; s < p->g.nstores; s++)
		if (!p->g.stores[s].dead && p->store_loop[s] == loop)
			read |= node_bit(p->g.stores[s].node);
	return read;
}

// count the values that are held at a time
static uint64_t element_comparisons(const KernelPlan *p)
{
	uint64_t set = 0;
	for (int v = 0; v < p->g.nnodes; v++)
		if (p->g.nodes[v].kind == COMPARISON && in_loops(p, v))
			set |= node_bit(v);
	return set;
}

/* the largest number of values of one element that are alive between two
 * loops */
static size_t most_held(const KernelPlan *p)
{
	size_t most = 0;
	for (int loop = 1; loop < p->nloops; loop++) {
		uint64_t made = 0, needed = 0;
		for (int k = 0; k < loop; k++)
			made |= p->loop[k];
		for (int k = loop; k < p->nloops; k++)
			needed |= p->taken[k];
		size_t n = 0;
		for (uint64_t both = made & needed; both; both &= both - 1)
			n++;
		most = n > most ? n : most;
	}
	return most;
}

// decide what a row holds
/* false: the registers of a thread do not suffice */
static bool find_held(KernelPlan *p)
{
	enum { MOST_HELD = 48 };
	uint64_t compared = element_comparisons(p), made = 0;
	for (int loop = 0; loop < p->nloops; loop++) {
		uint64_t read = read_in(p, loop);
		p->taken[loop] = read & made & ~compared;
		p->held |= p->taken[loop];
		p->loop[loop] |= read & compared;
		made |= p->loop[loop];
	}
	size_t threads = p->C ? row_threads(p->C) : 1,
		each = (p->C + threads * PACK - 1) / (threads * PACK) * PACK;
	return p->columns || most_held(p) * each <= MOST_HELD;
}

// find the loops of a looped row
static void find_looped(KernelPlan *p)
{
	for (int loop = 0; loop < p->nloops; loop++) {
		uint64_t set = closure(p, read_in(p, loop), true);
		for (int v = 0; v < p->g.nnodes; v++)
			if (plan_has(set, v) && in_loops(p, v))
				p->loop[loop] |= node_bit(v);
	}
}

// find the guards of loads
enum { UNUSED = -2, ALWAYS = -1 };

static void merge_guard(int *guard, int by)
{
	*guard = *guard == UNUSED || *guard == by ? by : ALWAYS;
}

static void find_guards(KernelPlan *p)
{
	for (int v = 0; v < p->g.nnodes; v++)
		p->guard[v] = UNUSED;
	for (int s = 0; s < p->g.nstores; s++)
		if (!p->g.stores[s].dead)
			merge_guard(&p->guard[p->g.stores[s].node], ALWAYS);
	for (int v = p->g.nnodes; v-- > 0;) {
		const Node *node = &p->g.nodes[v];
		if (!plan_has(p->live, v))
			continue;
		bool selects = node->kind == FORMULA && node->op == E_SELECT
			&& p->g.nodes[node->in[1]].kind == COMPARISON;
		int guard = node->kind == FOLDED ? ALWAYS : p->guard[v];
		for (int k = 0; k < node->n; k++)
			merge_guard(&p->guard[node->in[k]],
				selects && k == 0 ? node->in[1] : guard);
	}
	for (int v = 0; v < p->g.nnodes; v++) {
		bool guarded = p->guard[v] >= 0 && p->g.nodes[v].kind == LOAD
			&& in_loops(p, v);
		p->guard[v] = guarded ? p->guard[v] : ALWAYS;
		for (int loop = 0; loop < p->nloops && guarded; loop++)
			if (plan_has(p->loop[loop], v))
				p->loop[loop] |= node_bit(p->guard[v]);
	}
}

// list a plan's arguments
int plan_pointers(const KernelPlan *p, void *at[MOST_POINTERS])
{
	int n = 0;
	for (int v = 0; v < p->g.nnodes; v++) {
		const Node *node = &p->g.nodes[v];
		if (!plan_has(p->live, v))
			continue;
		if (node->kind == LOAD)
			at[n++] = node->from.at;
		const int32_t *ints = node->kind == LOAD ? node->from.ints
			: node->kind == COMPARISON ? node->compare.ints : NULL;
		if (ints)
			at[n++] = (void *)ints;
	}
	for (int s = 0; s < p->g.nstores; s++)
		if (!p->g.stores[s].dead)
			at[n++] = p->g.stores[s].to.at;
	if (p->g.skip)
		at[n++] = (void *)p->g.skip;
	return n;
}

// list the numbers of a plan
int plan_numbers(const KernelPlan *p, double x[MOST_NODES])
{
	int n = 0;
	for (int v = 0; v < p->g.nnodes; v++)
		if (plan_has(p->live, v) && p->g.nodes[v].kind == CONSTANT)
			x[n++] = p->g.nodes[v].number;
	return n;
}

// count the bytes that a plan moves
double plan_bytes(const KernelPlan *p)
{
	double bytes = 0;
	for (int v = 0; v < p->g.nnodes; v++) {
		const Node *node = &p->g.nodes[v];
		int times = 0;
		for (int loop = 0; loop < p->nloops; loop++)
			times += plan_has(p->loop[loop], v);
		if (plan_has(p->live, v) && node->kind == LOAD)
			bytes += (double)node->from.moved * (times ? times : 1);
	}
	for (int s = 0; s < p->g.nstores; s++)
		if (!p->g.stores[s].dead)
			bytes += (double)p->g.stores[s].to.moved
				* (p->g.stores[s].columns ? 2 : 1);
	return bytes;
}

// copy the group and do the passes that all shapes share
static void plan_begin(KernelPlan *p, const FusionGroup *g, KernelShape shape)
{
	memset(p, 0, sizeof *p);
	p->g = *g;
	p->C = g->C;
	p->rows = g->C ? g->n / g->C : 1;
	p->shape = shape;
	find_levels(p);
	find_live(p);
	find_store_loops(p);
}

// plan rows that are looped
void plan_make_looped(KernelPlan *p, const FusionGroup *g)
{
	plan_begin(p, g, LOOPED_ROW);
	find_looped(p);
	find_guards(p);
}

// plan a group
void plan_make(KernelPlan *p, const FusionGroup *g)
{
	if (g->C > LONGEST_HELD) {
		plan_make_looped(p, g);
		return;
	}
	plan_begin(p, g, g->C ? HELD_ROW : FLAT);
	find_loops(p);
	if (find_held(p))
		find_guards(p);
	else
		plan_make_looped(p, g);
}
