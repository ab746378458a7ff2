/* elementary.h: elementary operations: maps and folds of arrays, one at a
 * time */
#ifndef OPS_ELEMENTARY_H
#define OPS_ELEMENTARY_H

#include "ops/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum Opcode {
#define OPCODE(NAME, OPERANDS, FORMULA) E_##NAME,
#include "ops/opcodes.h"
#undef OPCODE
	NOPCODES
} Opcode;
enum { MOST_OPERANDS = 3, MOST_TERMS = 2 };

// declare an index
typedef struct Term {
	size_t div, mod, stride;        /* mod 0: no remainder is taken */
} Term;

typedef struct Index {
	int n;
	Term term[MOST_TERMS];
} Index;

/* the position in an array, in elements, of element i of an operation */
static inline size_t index_of(const Index *x, size_t i)
{
	size_t at = 0;
	for (int k = 0; k < x->n; k++) {
		const Term *t = &x->term[k];
		at += (t->mod ? i / t->div % t->mod : i / t->div) * t->stride;
	}
	return at;
}

/* element i lies at i times stride */
static inline Index index_every(size_t stride)
{
	return (Index){ 1, { { 1, 0, stride } } };
}

// declare operands
typedef enum { NUMBER, MEMORY, AT_MOST, EQUALS } OperandKind;

typedef struct Operand {
	OperandKind kind;
	double number;
	/* MEMORY: element at(i) of a or, if ints is given, element at(i) + ints[i];
	 * a has `extent` elements from a.at on */
	Array a;
	Index at;
	const int32_t *ints;
	size_t extent;
	/* AT_MOST: at(i) <= than(i); EQUALS: at(i) = ints[than(i)] */
	Index than;
} Operand;

// construct operands
#ifndef __cplusplus
static inline Operand number(double x)
{
	return (Operand){ NUMBER, .number = x };
}

static inline Operand element_at(Array a, Index at)
{
	return (Operand){ MEMORY, .a = a, .at = at };
}

static inline Operand element(Array a)
{
	return element_at(a, index_every(1));
}

/* an array with one element for each row of C */
static inline Operand per_row(Array a, size_t C)
{
	return element_at(a, (Index){ 1, { { C, 0, 1 } } });
}

/* an array with one element for each of the C columns */
static inline Operand per_column(Array a, size_t C)
{
	return element_at(a, (Index){ 1, { { 1, C, 1 } } });
}

/* one number in the device's memory, the same for all elements */
static inline Operand scalar(const real *x)
{
	return element_at((Array){ (void *)x, TYPE_REAL }, (Index){ 0 });
}
#endif

// declare an elementary operation
typedef enum { FOLD_NONE, FOLD_SUM, FOLD_MAXIMUM, FOLD_COLUMNS } Fold;

/* FOLD_NONE: y[out(i)] = op(in ...) for i < n. FOLD_SUM, FOLD_MAXIMUM:
 * y[out(row)] is the sum or maximum of op(in ...) over the C elements of a
 * row, of which there are n / C. FOLD_COLUMNS: y[column] += the sum of op(in
 * ...) over all rows. y may be an operand at the same index. A map does
 * nothing when *skip is not 0; skip may be NULL, and is NULL for folds */
typedef struct Elementary {
	Opcode op;
	Fold fold;
	size_t n, C;
	Array y;
	Index out;
	Operand in[MOST_OPERANDS];
	const int32_t *skip;
} Elementary;

int  opcode_operands(Opcode op);
/* n elements of TYPE_REAL for the steps of one formula; the caller frees
 * them by device_free. Under a deferral they may never get memory */
Array elementary_scratch(Device *d, size_t n, const char *what);

// declare how rows are shared out to threads
enum { PACK = 4, LANES = 16, MOST_THREADS = 1024 };

/* threads for a row of C: a power of two, whole warps */
static inline unsigned row_threads(size_t C)
{
	unsigned T = 32;
	while (T < MOST_THREADS && T * 2 * (size_t)PACK < C)
		T *= 2;
	return T;
}

/* slabs into which rows are cut for sums of columns; slab s begins at row s
 * rows / slabs */
static inline size_t row_slabs(size_t rows, size_t C)
{
	const size_t most = ((size_t)1 << 18) / row_threads(C);
	const size_t least = (rows + 7) / 8;
	return least < most ? least : most;
}

#ifdef __cplusplus
}
#endif

#endif
