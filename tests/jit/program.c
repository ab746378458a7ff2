#include "tests/jit/program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "device/cpu.h"
#include "ops/cpu/cpu.h"

// draw a program
typedef struct Draw {
	Program *p;
	uint64_t seed, i;
	size_t used;
	Array elements[8], rows[4], columns[2], all[2], pairs;
	int nelements, nrows;
	Array element, row;             /* written last */
} Draw;

static int below(Draw *d, int n)
{
	return (int)(random_bits(d->seed, 1, d->i++) % (uint64_t)n);
}

static Array carve(Draw *d, size_t n, bool scratch)
{
	static const Type types[] = { TYPE_REAL, TYPE_REAL, TYPE_REAL, BF16, FP16 };
	Array a = { d->p->pool + d->used, scratch ? TYPE_REAL : types[below(d, 5)] };
	for (size_t k = 0; k < n; k++) {
		real x = (real)random_normal(d->seed, 2, d->i++);
		d->p->first[d->used + k] = scratch ? (real)NAN
			: round_to(a.type, (float)x);
	}
	d->used += n + 3;
	return a;
}

static void draw_arrays(Draw *d)
{
	size_t n = d->p->rows * d->p->C;
	while (d->nelements < 4)
		d->elements[d->nelements++] = carve(d, n, false);
	d->elements[d->nelements] = carve(d, n + 1, false);
	d->nelements++;
	d->elements[d->nelements] = array_at(d->elements[d->nelements - 1], 1);
	d->nelements++;
	for (int k = 0; k < 2; k++) {
		d->elements[d->nelements++] = carve(d, n, true);
		d->rows[d->nrows++] = carve(d, d->p->rows, false);
		d->rows[d->nrows++] = carve(d, d->p->rows, true);
		d->columns[k] = carve(d, d->p->C, false);
		d->all[k] = carve(d, 1, false);
		d->all[k].type = TYPE_REAL;
	}
	d->pairs = carve(d, 2 * n, false);
}

static Array draw_element(Draw *d)
{
	return below(d, 2) && d->element.at ? d->element
		: d->elements[below(d, d->nelements)];
}

static Array draw_row(Draw *d)
{
	return below(d, 2) && d->row.at ? d->row : d->rows[below(d, d->nrows)];
}

static Operand draw_operand(Draw *d, bool row)
{
	size_t C = d->p->C, n = d->p->rows * C;
	switch (below(d, 24)) {
	case 0: return number(random_normal(d->seed, 3, d->i++));
	case 1: return scalar(d->all[below(d, 2)].at);
	case 2: case 3: case 4: case 5: case 6:
		return row ? element(draw_row(d)) : per_row(draw_row(d), C);
	case 7: case 8:
		return row ? element(draw_row(d))
			: per_column(d->columns[below(d, 2)], C);
	case 9:
		return (Operand){ MEMORY, .a = d->elements[below(d, d->nelements)],
			.at = row ? index_every(C) : (Index){ 1, { { C, 0, C } } },
			.ints = row ? d->p->targets : NULL, .extent = n };
	case 10:
		return row ? number(1) : element_at(array_at(d->pairs, below(d, 2)),
			index_every(2));
	default:
		return element(row ? draw_row(d) : draw_element(d));
	}
}

static Operand draw_comparison(Draw *d, bool row)
{
	size_t C = d->p->C;
	if (row || below(d, 2))
		return (Operand){ AT_MOST, .at = { 1, { { 1, C, 1 } } },
			.than = { 1, { { row ? 1 : C, 0, 2 } } } };
	return (Operand){ EQUALS, .at = { 1, { { 1, C, 1 } } },
		.ints = d->p->targets, .than = { 1, { { C, 0, 1 } } } };
}

static Line draw_line(Draw *d)
{
	Program *p = d->p;
	int kind = below(d, 14);
	bool row = kind == 0 || kind == 1;
	Elementary e = { .op = below(d, NOPCODES), .n = row ? p->rows
		: p->rows * p->C, .C = p->C, .out = index_every(1) };
	for (int k = 0; k < opcode_operands(e.op); k++)
		e.in[k] = e.op == E_SELECT && k == 1 ? draw_comparison(d, row)
			: draw_operand(d, row);
	if (kind < 5 && kind > 1)
		e.fold = kind == 2 ? FOLD_MAXIMUM : kind == 3 ? FOLD_SUM
			: below(d, 2) ? FOLD_COLUMNS : FOLD_SUM;
	if (row || e.fold == FOLD_SUM || e.fold == FOLD_MAXIMUM)
		e.y = d->row = d->rows[below(d, d->nrows)];
	else if (e.fold == FOLD_COLUMNS)
		e.y = d->columns[below(d, 2)];
	else
		e.y = d->element = d->elements[below(d, d->nelements)];
	if (!row && e.fold == FOLD_NONE && below(d, 20) == 0) {
		e.y = array_at(d->pairs, below(d, 2));
		e.out = index_every(2);
	}
	return (Line){ .e = e };
}

static Line draw_end(Draw *d)
{
	bool row = below(d, 2) && d->nrows > 2;
	if (!row && d->nelements <= 6)
		return draw_line(d);
	size_t n = row ? d->p->rows : d->p->rows * d->p->C;
	Array a = row ? d->rows[--d->nrows] : d->elements[--d->nelements];
	d->row = d->element = (Array){ NULL, TYPE_REAL };
	return (Line){ .frees = true, .at = a.at, .n = n };
}

void program_draw(Program *p, uint64_t seed)
{
	Draw d = { .p = p, .seed = seed };
	bool many = below(&d, 4) == 0;
	p->rows = 1 + (size_t)below(&d, many ? 20 : 6);
	p->C = 1 + (size_t)below(&d, many || below(&d, 3) ? 9 : 40);
	draw_arrays(&d);
	for (size_t row = 0; row < p->rows; row++)
		p->targets[row] = below(&d, (int)p->C);
	p->n = 3 + below(&d, MOST_STEPS - 3);
	for (int k = 0; k < p->n; k++)
		p->line[k] = below(&d, 8) ? draw_line(&d) : draw_end(&d);
}

// print a program
static const char *const names[] = {
#define OPCODE(NAME, OPERANDS, FORMULA) [E_##NAME] = #NAME,
#include "ops/opcodes.h"
#undef OPCODE
};

static void print_operand(const Program *p, const Operand *x)
{
	if (x->kind == NUMBER)
		printf(" %g", x->number);
	else if (x->kind != MEMORY)
		printf(" %s", x->kind == EQUALS ? "hit" : "causal");
	else
		printf(" %s[%td; %zu %zu %zu%s]", type_names[x->a.type],
			(real *)x->a.at - p->pool, x->at.n ? x->at.term[0].div : 0,
			x->at.term[0].mod, x->at.term[0].stride, x->ints ? " + t" : "");
}

void program_print(const Program *p)
{
	static const char *const folds[] = { [FOLD_NONE] = "", [FOLD_SUM] = "sum ",
		[FOLD_MAXIMUM] = "maximum ", [FOLD_COLUMNS] = "columns " };
	printf("%zu rows of %zu\n", p->rows, p->C);
	for (int k = 0; k < p->n; k++) {
		const Line *l = &p->line[k];
		if (p->left_out[k])
			continue;
		if (l->frees) {
			printf("free %td\n", l->at - p->pool);
			continue;
		}
		printf("%s[%td; %zu] = %s%s", type_names[l->e.y.type],
			(real *)l->e.y.at - p->pool, l->e.out.term[0].stride,
			folds[l->e.fold], names[l->e.op]);
		for (int i = 0; i < opcode_operands(l->e.op); i++)
			print_operand(p, &l->e.in[i]);
		printf("   (%zu)\n", l->e.n);
	}
}

// run a program one operation at a time
static bool meaningless(const Elementary *e)
{
	FusionGroup g;
	fusion_init(&g, cpu_backend.width, TYPE_REAL);
	return fusion_join(&g, e) != NULL;
}

static void begin(Program *p)
{
	memcpy(p->pool, p->first, sizeof p->pool);
	memset(p->dead, 0, sizeof p->dead);
	for (int k = 0; k < p->n; k++) {
		const Line *l = &p->line[k];
		if (!l->frees)
			p->left_out[k] |= meaningless(&l->e);
		for (size_t i = 0; l->frees && !p->left_out[k] && i < l->n; i++)
			p->dead[l->at - p->pool + i] = true;
	}
}

void program_eager(Program *p)
{
	begin(p);
	for (int k = 0; k < p->n; k++)
		if (!p->left_out[k] && !p->line[k].frees)
			cpu_elementary(NULL, &p->line[k].e);
}

// run a program in groups
static void close_into(FusionGroup *g, void (*run)(void *arg,
	const KernelPlan *plan),
	void *arg)
{
	static KernelPlan plan;
	if (g->noperations > 0) {
		plan_make(&plan, g);
		if (plan.live)
			run(arg, &plan);
	}
	fusion_init(g, cpu_backend.width, TYPE_REAL);
}

void program_fused(Program *p, void (*run)(void *arg, const KernelPlan *plan),
	void *arg)
{
	static FusionGroup g;
	begin(p);
	fusion_init(&g, cpu_backend.width, TYPE_REAL);
	for (int k = 0; k < p->n; k++) {
		const Line *l = &p->line[k];
		if (p->left_out[k])
			continue;
		if (l->frees) {
			fusion_drop(&g, l->at, l->n * sizeof(real));
		} else if (fusion_join(&g, &l->e)) {
			close_into(&g, run, arg);
			fusion_join(&g, &l->e);
		}
	}
	close_into(&g, run, arg);
}
