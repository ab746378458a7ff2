/* source.h: a plan as the text of a program */
#ifndef JIT_SOURCE_H
#define JIT_SOURCE_H

#include <stdio.h>

#include "jit/plan.h"

/* what all kernels in C share */
void source_c_prelude(FILE *f);
/* void name(first, last, rows, slabs, pointers, numbers, round_to): rows first to
 * last; of a FLAT plan elements, of one with sums of columns slabs */
void source_c(FILE *f, const Plan *p, const char *name);
/* a whole program with the kernel `fused`, whose arguments are the number of rows
 * (FLAT: of elements), the pointers, the numbers; its type is size_t, or
 * unsigned if source_short */
void source_cuda(FILE *f, const Plan *p);
/* do 32 bits hold every index? */
bool source_short(const Plan *p);
/* packs of a row that a thread has, of T threads */
size_t source_packs(const Plan *p);

// declare the writer
typedef struct Writer {
	FILE *f;
	const Plan *p;
	bool cuda;
	int depth;                      /* of the lines' indentation */
	/* CUDA: moved in packs */
	bool packed[MOST_NODES], store_packed[MOST_STORES];
} Writer;

void source_indent(const Writer *w);
/* a line */
void source_line(const Writer *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* the nodes of a row, or of all, that can be computed after `stage` loops */
void source_row(const Writer *w, int stage);
/* for element i: what the loop computes, and what it adds to folds, which are
 * called r, the fold's number, and `into`. Held values stand at `held` of arrays
 * called h and their number; the loop takes some, and keeps some of its own */
void source_element(const Writer *w, int loop, const char *into,
	const char *held);
/* where element i of an access is: a or s, its number, and an index */
void source_place(const Writer *w, char array, int number, const Access *a);
/* the name of a node's value */
const char *source_name(const Plan *p, int v, char name[16]);
/* the condition of a comparison */
void source_comparison(const Writer *w, int v);
bool source_stored(const Plan *p, int s, int loop);
/* what a loop stores: each store, with its number and the name of its value, by
 * put, which ends the line */
void source_stores(const Writer *w, int loop, void (*put)(const Writer *w, int s,
	const Store *made, const char *name));
/* live folds of rows that the loop completes */
bool source_folds(const Plan *p, int v, int loop);

#endif
