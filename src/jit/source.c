#include "jit/source.h"

#include <stdarg.h>

// write lines and indices
void source_indent(const Writer *w)
{
	for (int k = 0; k < w->depth; k++)
		fputc('\t', w->f);
}

void source_line(const Writer *w, const char *format, ...)
{
	va_list arguments;
	source_indent(w);
	va_start(arguments, format);
	vfprintf(w->f, format, arguments);
	va_end(arguments);
	fputc('\n', w->f);
}

// write an index
/* in terms of row and j, the column, or of i, the element */
static void put_index(const Writer *w, const Index *x)
{
	size_t C = w->p->C;
	for (int k = 0; k < x->n; k++) {
		const Term *t = &x->term[k];
		bool row = C > 0 && t->div % C == 0;
		bool column = C > 0 && t->div == 1 && t->mod == C;
		size_t div = row ? t->div / C : t->div;
		fprintf(w->f, "%s%s", k ? " + " : "", row ? "row" : column ? "j" : "i");
		if (div > 1)
			fprintf(w->f, " / %zu", div);
		if (t->mod && !column)
			fprintf(w->f, " %% %zu", t->mod);
		if (t->stride > 1)
			fprintf(w->f, " * %zu", t->stride);
	}
	if (x->n == 0)
		fputc('0', w->f);
}

void source_access(const Writer *w, char array, int number, const Access *a)
{
	fprintf(w->f, "%c%d[", array, number);
	put_index(w, &a->index);
	if (a->ints) {
		fprintf(w->f, " + (size_t)t%d[", number);
		put_index(w, &a->ints_index);
		fputc(']', w->f);
	}
	fputc(']', w->f);
}

/* writes the variable of node v to name, and returns name */
static const char *source_name(const KernelPlan *p, int v, char name[16])
{
	bool constant = p->g.nodes[v].kind == CONSTANT;
	snprintf(name, 16, "%c%d", constant ? 'n' : 'v', v);
	return name;
}

// write the value of a node
static const char *const opcode_names[NOPCODES] = {
#define OPCODE(NAME, OPERANDS, FORMULA) [E_##NAME] = #NAME,
#include "ops/opcodes.h"
#undef OPCODE
};

// write a load
static void put_load(const Writer *w, int v)
{
	const Access *from = &w->p->g.nodes[v].from;
	if (w->p->guard[v] >= 0 && !w->packed[v])
		fprintf(w->f, "!v%d ? 0 : ", w->p->guard[v]);
	if (w->cuda)
		fprintf(w->f, "from_%s(", type_names[from->type]);
	if (w->packed[v])
		fprintf(w->f, "p%d.at[k]", v);
	else
		source_access(w, 'a', v, from);
	if (w->cuda)
		fputc(')', w->f);
}

// write a comparison
void source_comparison(const Writer *w, int v)
{
	const Operand *x = &w->p->g.nodes[v].compare;
	put_index(w, &x->at);
	fputs(x->kind == EQUALS ? " == (size_t)" : " <= ", w->f);
	if (x->kind == EQUALS)
		fprintf(w->f, "t%d[", v);
	put_index(w, &x->than);
	if (x->kind == EQUALS)
		fputc(']', w->f);
}

// write a formula or a rounding
static void put_formula(const Writer *w, int v)
{
	const KernelPlan *p = w->p;
	const Node *node = &p->g.nodes[v];
	char name[16];
	bool shared = w->cuda && node->op == E_DIVIDE
		&& p->level[node->in[1]] < p->level[v];
	fprintf(w->f, "op_%s%s(", opcode_names[node->op], shared ? "_SHARED" : "");
	for (int k = 0; k < MOST_OPERANDS; k++)
		fprintf(w->f, "%s%s", k ? ", " : "", k < node->n
			? source_name(p, node->in[k], name) : "0");
	fputc(')', w->f);
}

static void put_rounded(const Writer *w, const Node *node)
{
	char name[16];
	source_name(w->p, node->in[0], name);
	if (w->cuda)
		fprintf(w->f, "round_%s(%s)", type_names[node->type], name);
	else
		fprintf(w->f, "round_to(%d, (float)%s)", node->type, name);
}

// write a node as a variable
static void put_node(const Writer *w, int v)
{
	const Node *node = &w->p->g.nodes[v];
	source_indent(w);
	fprintf(w->f, "const %s v%d = ", node->kind == COMPARISON ? "int" : "real",
		v);
	switch (node->kind) {
	case LOAD:       put_load(w, v); break;
	case COMPARISON: source_comparison(w, v); break;
	case FORMULA:    put_formula(w, v); break;
	default:         put_rounded(w, node); break;
	}
	fputs(";\n", w->f);
}

// write what is computed for a row
void source_row(const Writer *w, int stage)
{
	const KernelPlan *p = w->p;
	for (int v = 0; v < p->g.nnodes; v++) {
		const Node *node = &p->g.nodes[v];
		if (plan_has(p->live, v) && p->level[v] < LEVEL_ELEMENT
			&& node->kind != FOLDED && node->kind != CONSTANT
			&& node->stage == stage)
			put_node(w, v);
	}
}

// write what is computed for an element
bool source_stored(const KernelPlan *p, int s, int loop)
{
	return !p->g.stores[s].dead && p->store_loop[s] == loop;
}

void source_stores(const Writer *w, int loop, void (*put)(const Writer *w, int s,
	const Store *made, const char *name))
{
	char name[16];
	for (int s = 0; s < w->p->g.nstores; s++) {
		const Store *made = &w->p->g.stores[s];
		if (!source_stored(w->p, s, loop))
			continue;
		source_indent(w);
		put(w, s, made, source_name(w->p, made->node, name));
	}
}

bool source_folds(const KernelPlan *p, int v, int loop)
{
	return plan_has(p->live, v) && p->g.nodes[v].kind == FOLDED
		&& p->g.nodes[v].stage == loop;
}

// write the body of a loop
static void put_nodes(const Writer *w, int loop, bool comparisons)
{
	for (int v = 0; v < w->p->g.nnodes; v++)
		if (plan_has(w->p->loop[loop], v)
			&& (w->p->g.nodes[v].kind == COMPARISON) == comparisons)
			put_node(w, v);
}

void source_element(const Writer *w, int loop, const char *into,
	const char *held)
{
	const KernelPlan *p = w->p;
	char name[16];
	for (int v = 0; v < p->g.nnodes; v++)
		if (plan_has(p->taken[loop], v))
			source_line(w, "const real v%d = h%d[%s];", v, v, held);
	put_nodes(w, loop, true);
	put_nodes(w, loop, false);
	for (int v = 0; v < p->g.nnodes; v++)
		if (source_folds(p, v, loop)) {
			const Node *node = &p->g.nodes[v];
			source_name(p, node->in[0], name);
			source_line(w, "r%d%s = fold_%s(r%d%s, %s);", v, into,
				node->fold == FOLD_SUM ? "sum" : "maximum", v, into, name);
		}
	for (int v = 0; v < p->g.nnodes; v++)
		if (plan_has(p->held & p->loop[loop], v))
			source_line(w, "h%d[%s] = v%d;", v, held, v);
}
