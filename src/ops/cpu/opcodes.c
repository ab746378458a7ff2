#include "ops/elementary.h"

#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
#include "base/error.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/exponential.h"

// compute one opcode
static real root(real x)
{
	return REAL_SQRT(x);
}

static real inverse_root(real x)
{
	return 1 / REAL_SQRT(x);
}

static real logarithm(real x)
{
	return (real)log(x);
}

static real compute(Opcode op, real a, real b, real c)
{
	switch (op) {
#define OPCODE(NAME, OPERANDS, FORMULA) case E_##NAME: return FORMULA;
#include "ops/opcodes.h"
#undef OPCODE
	default: return 0;
	}
}

// read an operand
static real operand(const Operand *x, size_t i)
{
	size_t at = index_of(&x->at, i);
	switch (x->kind) {
	case NUMBER:  return (real)x->number;
	case AT_MOST: return at <= index_of(&x->than, i);
	case EQUALS:  return at == (size_t)x->ints[index_of(&x->than, i)];
	default:      return ((real *)x->a.at)[x->ints ? at + x->ints[i] : at];
	}
}

// compute and store one element of an operation
static real value(const Elementary *e, size_t i)
{
	real x[MOST_OPERANDS] = { 0 };
	for (int k = 0; k < opcode_operands(e->op); k++)
		x[k] = operand(&e->in[k], i);
	return compute(e->op, x[0], x[1], x[2]);
}

// store one element, rounded to the format of its array
static void store(const Elementary *e, size_t at, real x)
{
	((real *)e->y.at)[at] = e->y.type == TYPE_REAL ? x
		: round_to(e->y.type, (float)x);
}

// fold a row
static real join(Fold fold, real a, real b)
{
	return fold == FOLD_MAXIMUM ? (a < b ? b : a) : a + b;
}

static real fold_row(const Elementary *e, size_t row)
{
	real lane[LANES];
	for (int l = 0; l < LANES; l++)
		lane[l] = e->fold == FOLD_MAXIMUM ? -INFINITY : 0;
	for (size_t j = 0; j < e->C; j++)
		lane[j % LANES] = join(e->fold, lane[j % LANES],
			value(e, row * e->C + j));
	for (int half = LANES / 2; half > 0; half /= 2)
		for (int l = 0; l < half; l++)
			lane[l] = join(e->fold, lane[l], lane[l + half]);
	return lane[0];
}

// fold columns
void cpu_add_slabs(Array y, const real *partial, size_t slabs, size_t C)
{
	real *to = y.at;
	for (size_t j = 0; j < C; j++) {
		real sum = 0;
		for (size_t s = 0; s < slabs; s++)
			sum += partial[s * C + j];
		to[j] += sum;
	}
	cpu_round(y, C);
}

static void fold_columns(const Elementary *e)
{
	size_t C = e->C, rows = e->n / C, slabs = row_slabs(rows, C);
	real *partial = need(calloc(slabs * C, sizeof *partial));
	#pragma omp parallel for schedule(static)
	for (size_t s = 0; s < slabs; s++)
		for (size_t row = s * rows / slabs; row < (s + 1) * rows / slabs; row++)
			for (size_t j = 0; j < C; j++)
				partial[s * C + j] += value(e, row * C + j);
	cpu_add_slabs(e->y, partial, slabs, C);
	free(partial);
}

// interpret an elementary operation on the CPU
void cpu_elementary(Device *d, const Elementary *e)
{
	if (e->skip && *e->skip)
		return;
	if (e->fold == FOLD_COLUMNS) {
		fold_columns(e);
	} else if (e->fold != FOLD_NONE) {
		#pragma omp parallel for schedule(static)
		for (size_t row = 0; row < e->n / e->C; row++)
			store(e, index_of(&e->out, row), fold_row(e, row));
	} else {
		#pragma omp parallel for schedule(static)
		for (size_t i = 0; i < e->n; i++)
			store(e, index_of(&e->out, i), value(e, i));
	}
}
