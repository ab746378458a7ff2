/* interpret.c: plans, as their kernels would do them */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cpu/cpu.h"
#include "ops/cpu/exponential.h"
#include "tests/jit/program.h"

enum { MOST_ELEMENTS = 256 };

typedef struct Machine {
	const KernelPlan *p;
	size_t row;
	real v[MOST_NODES][MOST_ELEMENTS];      /* a row's values: in element 0 */
	real lanes[MOST_NODES][LANES];
	real *sums[MOST_STORES];
	size_t slab;
} Machine;

// interpret a node
static real root(real x) { return REAL_SQRT(x); }
static real inverse_root(real x) { return 1 / REAL_SQRT(x); }
static real logarithm(real x) { return (real)log(x); }

static real formula(Opcode op, real a, real b, real c)
{
	switch (op) {
#define OPCODE(NAME, OPERANDS, FORMULA) case E_##NAME: return FORMULA;
#include "ops/opcodes.h"
#undef OPCODE
	default: return 0;
	}
}

// read a value as a kernel would
static real get(const Machine *m, int v, size_t j)
{
	if (m->p->g.nodes[v].kind == CONSTANT)
		return (real)m->p->g.nodes[v].number;
	return m->v[v][m->p->level[v] == LEVEL_ELEMENT ? j : 0];
}

static real load(const Machine *m, int v, size_t i, size_t j)
{
	const Access *a = &m->p->g.nodes[v].from;
	size_t at = index_of(&a->index, i);
	if (m->p->guard[v] >= 0 && !get(m, m->p->guard[v], j))
		return 0;
	return ((real *)a->at)[a->ints ? at + a->ints[index_of(&a->ints_index,
		i)] : at];
}

static real interpret_node(const Machine *m, int v, size_t i, size_t j)
{
	const Node *node = &m->p->g.nodes[v];
	const Operand *x = &node->compare;
	real in[MOST_OPERANDS] = { 0 };
	for (int k = 0; k < node->n; k++)
		in[k] = get(m, node->in[k], j);
	switch (node->kind) {
	case LOAD:    return load(m, v, i, j);
	case FORMULA: return formula(node->op, in[0], in[1], in[2]);
	case ROUNDED: return round_to(node->type, (float)in[0]);
	default:      return x->kind == EQUALS
		? index_of(&x->at, i) == (size_t)x->ints[index_of(&x->than, i)]
		: index_of(&x->at, i) <= index_of(&x->than, i);
	}
}

// interpret a loop
static void store_all(const Machine *m, int loop, size_t i, size_t j)
{
	for (int s = 0; s < m->p->g.nstores; s++) {
		const Store *made = &m->p->g.stores[s];
		if (made->dead || m->p->store_loop[s] != loop)
			continue;
		if (made->columns)
			m->sums[s][m->slab * m->p->C + j] += get(m, made->node, j);
		else
			((real *)made->to.at)[index_of(&made->to.index, i)]
				= get(m, made->node, j);
	}
}

static real joined(Fold fold, real a, real b)
{
	return fold == FOLD_SUM ? a + b : a < b ? b : a;
}

static void interpret_element(Machine *m, int loop, size_t i, size_t j)
{
	const KernelPlan *p = m->p;
	for (int pass = 0; pass < 2; pass++)
		for (int v = 0; v < p->g.nnodes; v++)
			if (plan_has(p->loop[loop], v)
				&& (p->g.nodes[v].kind == COMPARISON) == (pass == 0))
				m->v[v][j] = interpret_node(m, v, i, j);
	for (int v = 0; v < p->g.nnodes; v++) {
		const Node *node = &p->g.nodes[v];
		if (node->kind == FOLDED && node->stage == loop && plan_has(p->live, v))
			m->lanes[v][j % LANES] = joined(node->fold, m->lanes[v][j % LANES],
				get(m, node->in[0], j));
	}
	store_all(m, loop, i, j);
}

static void finish_folds(Machine *m, int loop)
{
	for (int v = 0; v < m->p->g.nnodes; v++) {
		const Node *node = &m->p->g.nodes[v];
		real *lane = m->lanes[v];
		if (node->kind != FOLDED || node->stage != loop)
			continue;
		for (int half = LANES / 2; half > 0; half /= 2)
			for (int l = 0; l < half; l++)
				lane[l] = joined(node->fold, lane[l], lane[l + half]);
		m->v[v][0] = lane[0];
	}
}

// interpret a plan
static void interpret_rows_nodes(Machine *m, int stage, size_t i)
{
	const KernelPlan *p = m->p;
	for (int v = 0; v < p->g.nnodes; v++)
		if (plan_has(p->live, v) && p->level[v] < LEVEL_ELEMENT
			&& p->g.nodes[v].kind != FOLDED && p->g.nodes[v].kind != CONSTANT
			&& p->g.nodes[v].stage == stage)
			m->v[v][0] = interpret_node(m, v, i, 0);
}

// interpret a row
/* interprets elements first to first + n - 1: a row, or all of a flat plan */
static void interpret_row(Machine *m, size_t first, size_t n)
{
	const KernelPlan *p = m->p;
	memset(m->v, 0xff, sizeof m->v);
	for (int v = 0; v < p->g.nnodes; v++)
		for (int l = 0; l < LANES; l++)
			m->lanes[v][l] = p->g.nodes[v].fold == FOLD_SUM ? 0 : -INFINITY;
	for (int loop = 0; loop < p->nloops; loop++) {
		interpret_rows_nodes(m, loop, first);
		for (size_t j = 0; j < n; j++)
			interpret_element(m, loop, first + j, j);
		finish_folds(m, loop);
		for (int v = 0; v < p->g.nnodes; v++)
			if (p->level[v] == LEVEL_ELEMENT && !plan_has(p->held, v))
				memset(m->v[v], 0xff, sizeof m->v[v]);
	}
	for (int stage = p->nloops; stage < MOST_STAGES; stage++)
		interpret_rows_nodes(m, stage, first);
	store_all(m, -1, first, 0);
}

void plan_interpret(const KernelPlan *p)
{
	static Machine m;
	size_t slabs = p->columns ? row_slabs(p->rows, p->C) : 1;
	m.p = p;
	for (int s = 0; s < p->g.nstores && p->columns; s++)
		m.sums[s] = calloc(slabs * p->C, sizeof(real));
	for (m.slab = 0; m.slab < slabs && p->C > 0; m.slab++)
		for (size_t row = m.slab * p->rows / slabs;
			row < (m.slab + 1) * p->rows / slabs; row++)
			interpret_row(&m, row * p->C, p->C);
	if (p->C == 0)
		interpret_row(&m, 0, p->g.n);
	for (int s = 0; s < p->g.nstores && p->columns; s++) {
		const Store *made = &p->g.stores[s];
		if (made->columns && !made->dead)
			cpu_add_slabs((Array){ made->to.at, made->to.type }, m.sums[s], slabs,
				p->C);
		free(m.sums[s]);
	}
}
