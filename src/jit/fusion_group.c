#include "jit/fusion_group.h"

#include <assert.h>
#include <string.h>

// compare accesses
static bool same_index(const Index *a, const Index *b);

bool access_same(const Access *a, const Access *b)
{
	return a->at == b->at && a->type == b->type && a->ints == b->ints
		&& same_index(&a->index, &b->index)
		&& (a->ints == NULL || same_index(&a->ints_index, &b->ints_index));
}

// may two accesses meet at different elements?
/* may element i of one access be element j of the other, with j not i? */
static bool may_overlap(const FusionGroup *g, const Access *a, const Access *b)
{
	if (a->at >= b->at + b->nbytes || b->at >= a->at + a->nbytes
		|| access_same(a, b))
		return false;
	if (a->type != b->type || a->ints || b->ints
		|| !same_index(&a->index, &b->index) || a->index.n != 1)
		return true;
	size_t apart = a->at > b->at ? a->at - b->at : b->at - a->at;
	size_t width = g->width(a->type), step = a->index.term[0].stride * width;
	return apart % width != 0 || apart % step == 0;
}

// rewrite an index in elements of the group
static Index element_index(const FusionGroup *g, const Index *x, size_t by_row)
{
	Index y = { 0 };
	for (int k = 0; k < x->n; k++) {
		Term t = x->term[k];
		t.div *= by_row;
		if (t.mod && t.mod >= (g->n + t.div - 1) / t.div)
			t.mod = 0;
		if (t.div < g->n && t.mod != 1 && t.stride > 0)
			y.term[y.n++] = t;
	}
	return y;
}

/* elements from the first to the last one touched; *count: how many different
 * elements are touched */
static size_t index_extent(const FusionGroup *g, const Index *x, size_t *count)
{
	size_t last = 0;
	*count = 1;
	for (int k = 0; k < x->n; k++) {
		const Term *t = &x->term[k];
		size_t most = (g->n - 1) / t->div;
		if (t->mod && most >= t->mod)
			most = t->mod - 1;
		last += most * t->stride;
		*count *= most + 1;
	}
	return last + 1;
}

static Access access_to(const FusionGroup *g, Array a, const Index *x,
	size_t by_row)
{
	Access to = { .at = a.at, .type = a.type, .index = element_index(g, x,
		by_row) };
	to.nbytes = index_extent(g, &to.index, &to.moved) * g->width(a.type);
	to.moved *= g->width(a.type);
	return to;
}

// find or add a node
static bool same_index(const Index *a, const Index *b)
{
	for (int k = 0; k < a->n && a->n == b->n; k++)
		if (a->term[k].div != b->term[k].div
			|| a->term[k].mod != b->term[k].mod
			|| a->term[k].stride != b->term[k].stride)
			return false;
	return a->n == b->n;
}

static bool same_node(const Node *a, const Node *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == LOAD)
		return access_same(&a->from, &b->from);
	return a->kind == COMPARISON && a->compare.kind == b->compare.kind
		&& a->compare.ints == b->compare.ints
		&& same_index(&a->compare.at, &b->compare.at)
		&& same_index(&a->compare.than, &b->compare.than);
}

/* the number of the node, which is added if it is not there; MOST_NODES: the
 * group has no room for it */
static int add_node(FusionGroup *g, Node node)
{
	for (int v = 0; v < g->nnodes; v++)
		if (same_node(&g->nodes[v], &node))
			return v;
	if (g->nnodes == MOST_NODES)
		return MOST_NODES;
	g->nodes[g->nnodes] = node;
	return g->nnodes++;
}

// add the operands of an operation
static int count_arrays(const FusionGroup *g)
{
	int n = 0;
	for (int v = 0; v < g->nnodes; v++)
		n += g->nodes[v].kind == LOAD && g->nodes[v].from.index.n > 0;
	for (int s = 0; s < g->nstores; s++)
		n += !g->stores[s].dead;
	return n;
}

/* the node of a load, or of the value that the group has stored there; *why is
 * set if the group cannot read it */
static int add_load(FusionGroup *g, Access from, const char **why)
{
	for (int s = g->nstores; s-- > 0;) {
		const Store *made = &g->stores[s];
		if (may_overlap(g, &made->to, &from))
			*why = "it reads what the group writes, at another place";
		else if (made->columns && access_same(&made->to, &from))
			*why = "it reads a sum of columns";
		else if (access_same(&made->to, &from))
			return made->node;
		if (*why)
			return 0;
	}
	return add_node(g, (Node){ LOAD, .from = from });
}

static int add_operand(FusionGroup *g, const Operand *x, size_t by_row,
	const char **why)
{
	Node node = { .kind = CONSTANT, .number = x->number };
	int v;
	if (x->kind == MEMORY) {
		Access from = access_to(g, x->a, &x->at, by_row);
		if (x->ints) {
			from.ints = x->ints;
			from.ints_index = element_index(g, &(Index){ 1, { { 1, 0, 1 } } },
				by_row);
			from.nbytes = x->extent * g->width(x->a.type);
		}
		g->bytes += (double)from.moved;
		v = add_load(g, from, why);
	} else {
		if (x->kind != NUMBER)
			node = (Node){ COMPARISON, .compare = { x->kind, .ints = x->ints,
				.at = element_index(g, &x->at, by_row),
				.than = element_index(g, &x->than, by_row) } };
		v = add_node(g, node);
	}
	if (*why == NULL && (v == MOST_NODES || count_arrays(g) > MOST_ARRAYS))
		*why = "the group is full";
	return v;
}

// add a store
static const char *add_store(FusionGroup *g, const Elementary *e, int node,
	size_t by_row)
{
	bool columns = e->fold == FOLD_COLUMNS;
	Index column = { 1, { { 1, e->C, 1 } } };
	Store made = { node, access_to(g, e->y, columns ? &column : &e->out,
		by_row), .columns = columns };
	g->bytes += (double)made.to.moved * (columns ? 2 : 1);
	if (node < MOST_NODES && !columns && e->y.type != g->native)
		made.node = add_node(g, (Node){ ROUNDED, .type = e->y.type, .n = 1,
			.in = { node }, .stage = g->nodes[node].stage
				+ (g->nodes[node].kind == FOLDED) });
	if (made.node == MOST_NODES || g->nstores == MOST_STORES)
		return "the group is full";
	// refuse a store that meets what the group touches elsewhere
	for (int v = 0; v < g->nnodes; v++)
		if (g->nodes[v].kind == LOAD && may_overlap(g, &g->nodes[v].from,
			&made.to))
			return "it writes what the group reads, at another place";
	for (int s = 0; s < g->nstores; s++) {
		const Store *before = &g->stores[s];
		if (may_overlap(g, &before->to, &made.to)
			|| (access_same(&before->to, &made.to)
				&& (columns || before->columns)))
			return "it writes what the group writes, at another place";
	}
	if (count_arrays(g) == MOST_ARRAYS)
		return "the group is full";
	for (int s = 0; s < g->nstores; s++)
		g->stores[s].dead |= access_same(&g->stores[s].to, &made.to);
	g->stores[g->nstores++] = made;
	return NULL;
}

// empty a group
void fusion_init(FusionGroup *g, size_t (*width)(Type type), Type native)
{
	memset(g, 0, offsetof(FusionGroup, nodes));
	g->width = width;
	g->native = native;
}

// say why the sizes do not fit
static const char *size_mismatch(FusionGroup *g, const Elementary *e)
{
	if (g->noperations == 0) {
		g->n = e->n;
		g->skip = e->skip;
	}
	if (g->skip != e->skip)
		return "it depends on another condition";
	if (e->fold == FOLD_NONE) {
		bool rows = g->C > 0 && e->n == g->n / g->C;
		return e->n == g->n || rows ? NULL : "it has another number of elements";
	}
	if (e->n != g->n)
		return "it has another number of elements";
	if (g->C > 0 && g->C != e->C)
		return "its rows have another length";
	g->C = e->C;
	if (e->fold == FOLD_COLUMNS && e->C > LONGEST_SUMMED)
		return "its rows are too long for sums of columns";
	return NULL;
}

// try to add an operation
static const char *add_operation(FusionGroup *g, const Elementary *e)
{
	const char *why = size_mismatch(g, e);
	if (why)
		return why;
	// add nodes and store of the operation
	size_t by_row = e->n == g->n ? 1 : g->C;
	Node value = { FORMULA, .op = e->op, .n = opcode_operands(e->op) };
	for (int k = 0; k < value.n; k++) {
		value.in[k] = add_operand(g, &e->in[k], by_row, &why);
		if (why)
			return why;
		const Node *in = &g->nodes[value.in[k]];
		int stage = in->stage + (in->kind == FOLDED);
		value.stage = value.stage > stage ? value.stage : stage;
	}
	if (value.stage == MOST_STAGES - 1)
		return "it has too many folds, one after the other";
	int node = e->op == E_COPY ? value.in[0] : add_node(g, value);
	bool row = e->fold == FOLD_SUM || e->fold == FOLD_MAXIMUM;
	if (row)
		node = add_node(g, (Node){ FOLDED, .fold = e->fold, .n = 1,
			.in = { node }, .stage = value.stage });
	why = add_store(g, e, node, row ? g->C : by_row);
	g->noperations++;
	return why;
}

// add an operation, or leave the group as it was
const char *fusion_join(FusionGroup *g, const Elementary *e)
{
	char counts[offsetof(FusionGroup, nodes)];
	memcpy(counts, g, sizeof counts);
	const char *why = add_operation(g, e);
	if (why)
		memcpy(g, counts, sizeof counts);
	return why;
}

// forget stores to freed memory
/* does p point into the nbytes from `from` on? */
static bool address_inside(const void *p, const char *from, size_t nbytes)
{
	return (const char *)p >= from && (const char *)p < from + nbytes;
}

static bool touches_address(const FusionGroup *g, const void *at)
{
	bool found = false;
	for (int v = 0; v < g->nnodes; v++) {
		const Node *node = &g->nodes[v];
		found |= node->kind == LOAD && node->from.index.n > 0
			&& address_inside(at, node->from.at, node->from.nbytes);
	}
	for (int s = 0; s < g->nstores; s++)
		found |= address_inside(at, g->stores[s].to.at, g->stores[s].to.nbytes);
	return found;
}

// ask whether an operation shares an array with the group
bool fusion_shares(const FusionGroup *g, const Elementary *e)
{
	bool found = touches_address(g, e->y.at);
	for (int k = 0; k < opcode_operands(e->op); k++)
		found |= e->in[k].kind == MEMORY && touches_address(g, e->in[k].a.at);
	return found;
}

// drop the stores to memory that is freed
bool fusion_drop(FusionGroup *g, const void *at, size_t nbytes)
{
	bool touched = g->noperations > 0 && address_inside(g->skip, at, nbytes);
	for (int s = 0; s < g->nstores; s++) {
		bool gone = address_inside(g->stores[s].to.at, at, nbytes);
		touched |= gone;
		g->stores[s].dead |= gone;
	}
	for (int v = 0; v < g->nnodes; v++) {
		const Node *node = &g->nodes[v];
		touched |= node->kind == LOAD && (address_inside(node->from.at, at,
			nbytes)
			|| address_inside(node->from.ints, at, nbytes));
		touched |= node->kind == COMPARISON
			&& address_inside(node->compare.ints, at, nbytes);
	}
	return touched;
}
