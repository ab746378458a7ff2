#include "jit/source.h"

#include "ops/cpu/exponential.h"

// write the prelude in C
#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(x) TEXT_OF(x)

void source_c_prelude(FILE *f)
{
	fprintf(f, "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n"
		"#include <string.h>\n#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n"
		"#endif\n"
		"typedef %s real;\ntypedef size_t index;\nenum { LANES = %d };\n",
		sizeof(real) == sizeof(float) ? "float" : "double", LANES);
#ifdef REAL_IS_DOUBLE
	fputs("#define exponential exp\n", f);
#else
	fputs(TEXT(EXPONENTIAL_OF_FLOAT) "\n", f);
#endif
	fprintf(f, "#define root(x) %s(x)\n#define inverse_root(x) (1 / %s(x))\n"
		"#define logarithm(x) ((real)log(x))\n", TEXT(REAL_SQRT),
		TEXT(REAL_SQRT));
#define OPCODE(NAME, OPERANDS, FORMULA) \
	fputs("static inline real op_" #NAME \
		"(real a, real b, real c) { return " #FORMULA "; }\n", f);
#include "ops/opcodes.h"
#undef OPCODE
	fputs("static inline real fold_sum(real a, real b) { return a + b; }\n"
		"static inline real fold_maximum(real a, real b)\n"
		"{ return a < b ? b : a; }\n", f);
}

// write the arguments in C
static void put_arguments(const Writer *w)
{
	const KernelPlan *p = w->p;
	int n = 0, k = 0;
	for (int v = 0; v < p->g.nnodes; v++) {
		const Node *node = &p->g.nodes[v];
		if (!plan_has(p->live, v))
			continue;
		if (node->kind == LOAD)
			source_line(w, "const real *const a%d = at[%d];", v, n++);
		if (node->kind == LOAD ? node->from.ints != NULL
			: node->kind == COMPARISON && node->compare.ints)
			source_line(w, "const int32_t *const t%d = at[%d];", v, n++);
		if (node->kind == CONSTANT)
			source_line(w, "const real n%d = (real)number[%d];", v, k++);
	}
	for (int s = 0; s < p->g.nstores; s++)
		if (!p->g.stores[s].dead)
			source_line(w, "real *const s%d = at[%d];", s, n++);
	if (p->g.skip)
		source_line(w, "if (*(const int32_t *)at[%d])\n\t\treturn;", n);
}

// write one loop in C
static void put_store(const Writer *w, int s, const Store *made, const char *name)
{
	if (made->columns)
		fprintf(w->f, "s%d[slab * %zu + j] += %s;\n", s, w->p->C, name);
	else {
		source_access(w, 's', s, &made->to);
		fprintf(w->f, " = %s;\n", name);
	}
}

/* writes the loop over elements first to first + n - 1 of a row; n is at most
 * LANES. first: an expression */
static void put_lanes(Writer *w, int loop, const char *first, size_t n)
{
	const KernelPlan *p = w->p;
	source_line(w, "for (index l = 0; l < %zu; l++) {", n);
	w->depth++;
	source_line(w, "const index j = %s + l, i = row * %zu + j;", first, p->C);
	source_element(w, loop, "[l]", "j");
	source_stores(w, loop, put_store);
	source_line(w, "(void)j, (void)i;");
	w->depth--;
	source_line(w, "}");
}

static void put_loop(Writer *w, int loop)
{
	const size_t rest = w->p->C % LANES, whole = w->p->C - rest;
	char first[24];
	if (whole > 0) {
		source_line(w, "for (index j0 = 0; j0 < %zu; j0 += LANES)", whole);
		w->depth++;
		put_lanes(w, loop, "j0", LANES);
		w->depth--;
	}
	snprintf(first, sizeof first, "%zu", whole);
	if (rest > 0)
		put_lanes(w, loop, first, rest);
}

// write the rows in C
static void put_folds(const Writer *w, int loop, bool begin)
{
	const KernelPlan *p = w->p;
	for (int v = 0; v < p->g.nnodes; v++) {
		bool sum = p->g.nodes[v].fold == FOLD_SUM;
		if (!source_folds(p, v, loop))
			continue;
		if (begin) {
			source_line(w, "real r%d[LANES];", v);
			source_line(w, "for (int l = 0; l < LANES; l++)");
			source_line(w, "\tr%d[l] = %s;", v, sum ? "0" : "-INFINITY");
			continue;
		}
		source_line(w, "for (int half = LANES / 2; half > 0; half /= 2)");
		source_line(w, "\tfor (int l = 0; l < half; l++)");
		source_line(w, "\t\tr%d[l] = fold_%s(r%d[l], r%d[l + half]);", v,
			sum ? "sum" : "maximum", v, v);
		source_line(w, "const real v%d = r%d[0];", v, v);
	}
}

// write the loop over rows in C
static void put_rows(Writer *w, const char *first, const char *last)
{
	const KernelPlan *p = w->p;
	source_line(w, "for (index row = %s; row < %s; row++) {", first, last);
	w->depth++;
	for (int v = 0; v < p->g.nnodes; v++)
		if (plan_has(p->held, v))
			source_line(w, "real h%d[%zu];", v, p->C);
	for (int loop = 0; loop < p->nloops; loop++) {
		source_row(w, loop);
		put_folds(w, loop, true);
		put_loop(w, loop);
		put_folds(w, loop, false);
	}
	for (int stage = p->nloops; stage < MOST_STAGES; stage++)
		source_row(w, stage);
	source_stores(w, -1, put_store);
	w->depth--;
	source_line(w, "}");
}

// write the loop over slabs in C
static void put_slabs(Writer *w)
{
	source_line(w, "for (index slab = first; slab < last; slab++) {");
	w->depth++;
	for (int s = 0; s < w->p->g.nstores; s++)
		if (w->p->g.stores[s].columns && !w->p->g.stores[s].dead)
			source_line(w, "memset(s%d + slab * %zu, 0, %zu * sizeof(real));", s,
				w->p->C, w->p->C);
	put_rows(w, "slab * rows / slabs", "(slab + 1) * rows / slabs");
	w->depth--;
	source_line(w, "}");
}

// write the elements of a flat plan in C
static void put_flat(Writer *w)
{
	source_row(w, 0);
	source_line(w, "for (index i = first; i < last; i++) {");
	w->depth++;
	source_element(w, 0, "", "i");
	source_stores(w, 0, put_store);
	w->depth--;
	source_line(w, "}");
}

// write a kernel in C
void source_c(FILE *f, const KernelPlan *p, const char *name)
{
	Writer writer = { .f = f, .p = p, .depth = 1 }, *w = &writer;
	fprintf(f, "void %s(size_t first, size_t last, size_t rows, size_t slabs,\n"
		"\tvoid *const *at, const double *number,\n"
		"\tfloat (*round_to)(int, float))\n"
		"{\n", name);
	put_arguments(w);
	if (p->shape == FLAT)
		put_flat(w);
	else if (p->columns)
		put_slabs(w);
	else
		put_rows(w, "first", "last");
	fputs("}\n", f);
}
