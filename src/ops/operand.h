/* operand.h: an element, a number or a comparison that an operation reads */
#ifndef OPS_OPERAND_H
#define OPS_OPERAND_H

#include "ops/array.h"

enum { MOST_OPERANDS = 3, MOST_TERMS = 2 };

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

#endif
