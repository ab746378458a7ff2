/* exact.c: programs in double precision, with bounds on errors */
#include <math.h>

#include "tests/ops/compare.h"
#include "tests/jit/program.h"

typedef struct Bounded {
	double x, error;
} Bounded;

// evaluate an opcode with its bound
static double root(double x) { return sqrt(x); }
static double inverse_root(double x) { return 1 / sqrt(x); }
static double logarithm(double x) { return log(x); }
static double exponential(double x) { return exp(x); }

static double exactly(Opcode op, double a, double b, double c)
{
	switch (op) {
#define OPCODE(NAME, OPERANDS, FORMULA) case E_##NAME: return FORMULA;
#include "ops/opcodes.h"
#undef OPCODE
	default: return NAN;
	}
}

static Bounded bounded(double x, double error)
{
	bool sure = isfinite(x) && isfinite(error) && fabs(x) + error < 1e30;
	return (Bounded){ x, sure ? error : INFINITY };
}

// evaluate an opcode at the corners of its operands
static Bounded apply(Opcode op, const Bounded in[3])
{
	static const int corners[] = { 1, 3, 9, 27 };
	double x = exactly(op, in[0].x, in[1].x, in[2].x), error = 0;
	for (int corner = 0; corner < corners[opcode_operands(op)]; corner++) {
		double at[3];
		for (int k = 0, rest = corner; k < 3; k++, rest /= 3)
			at[k] = in[k].x + (rest % 3 - 1) * in[k].error;
		double there = exactly(op, at[0], at[1], at[2]);
		if (!(fabs(there - x) <= error))
			error = isnan(there) ? INFINITY : fabs(there - x);
	}
	if (op == E_DIVIDE && fabs(in[1].x) <= in[1].error)
		error = INFINITY;
	for (int k = 0; k < opcode_operands(op); k++)
		error = in[k].error == INFINITY ? INFINITY : error;
	return bounded(x, error + 16 * EPS * (fabs(x) + error) + 0x1p-120);
}

static Bounded rounded_as(Type type, Bounded b)
{
	double most = fabs(b.x) + b.error;
	if (type == TYPE_REAL)
		return b;
	if (most > type_max(type))
		return bounded(b.x, INFINITY);
	return bounded(b.x, b.error
		+ (isfinite(most) ? type_spacing(type, most) : 0));
}

// evaluate operations with their bounds
typedef struct Exact {
	const Program *p;
	double *value, *error;
} Exact;

static Bounded fetch(const Exact *x, const Operand *o, size_t i)
{
	size_t at = index_of(&o->at, i);
	if (o->kind == NUMBER)
		return (Bounded){ (real)o->number, 0 };
	if (o->kind == AT_MOST)
		return (Bounded){ at <= index_of(&o->than, i), 0 };
	if (o->kind == EQUALS)
		return (Bounded){ at == (size_t)o->ints[index_of(&o->than, i)], 0 };
	at += (size_t)((real *)o->a.at - x->p->pool) + (o->ints ? o->ints[i] : 0);
	return (Bounded){ x->value[at], x->error[at] };
}

static Bounded evaluate(const Exact *x, const Elementary *e, size_t i)
{
	Bounded in[3] = { { 0, 0 } };
	for (int k = 0; k < opcode_operands(e->op); k++)
		in[k] = fetch(x, &e->in[k], i);
	return apply(e->op, in);
}

static void put(const Exact *x, Array y, size_t at, Bounded b)
{
	at += (size_t)((real *)y.at - x->p->pool);
	b = rounded_as(y.type, b);
	x->value[at] = b.x;
	x->error[at] = b.error;
}

// fold with a bound
/* folds elements first, first + step, ... (n of them) of the operation */
static Bounded fold(const Exact *x, const Elementary *e, size_t first,
	size_t step, size_t n, Bounded start)
{
	double sum = start.x, most = -INFINITY, error = start.error, all = 0;
	for (size_t k = 0; k < n; k++) {
		Bounded b = evaluate(x, e, first + k * step);
		sum += b.x;
		most = fmax(most, b.x);
		all += fabs(b.x);
		error = e->fold == FOLD_MAXIMUM ? fmax(error, b.error) : error + b.error;
		error = isnan(b.x) ? INFINITY : error;
	}
	if (e->fold == FOLD_MAXIMUM)
		return bounded(most, error);
	return bounded(sum, error + 2 * (double)n * EPS * (all + fabs(start.x)));
}

// evaluate a line
static void evaluate_line(const Exact *x, const Elementary *e)
{
	static Bounded result[POOL];
	size_t C = e->C, n = e->fold == FOLD_NONE ? e->n
		: e->fold == FOLD_COLUMNS ? C : e->n / C;
	for (size_t i = 0; i < n; i++) {
		if (e->fold == FOLD_NONE)
			result[i] = evaluate(x, e, i);
		else if (e->fold != FOLD_COLUMNS)
			result[i] = fold(x, e, i * C, 1, C, (Bounded){ 0, 0 });
		else
			result[i] = fold(x, e, i, C, e->n / C,
				fetch(x, &(Operand){ MEMORY, .a = e->y,
					.at = index_every(1) }, i));
	}
	for (size_t i = 0; i < n; i++)
		put(x, e->y, index_of(&e->out, i), result[i]);
}

// run a program in double precision
void program_exact(const Program *p, double *value, double *error)
{
	Exact x = { p, value, error };
	for (size_t i = 0; i < POOL; i++) {
		value[i] = p->first[i];
		error[i] = isnan(p->first[i]) ? INFINITY : 0;
	}
	for (int k = 0; k < p->n; k++)
		if (!p->left_out[k] && !p->line[k].frees)
			evaluate_line(&x, &p->line[k].e);
}
