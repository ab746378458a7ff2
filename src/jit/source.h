/* source.h: a plan as the text of a program */
#ifndef JIT_SOURCE_H
#define JIT_SOURCE_H

#include <stdio.h>

#include "jit/kernel_plan.h"

/* writes the definitions that all kernels in C share */
void source_c_prelude(FILE *f);
/* writes void name(first, last, rows, slabs, pointers, numbers, round_to),
 * which does rows first to last - 1; of a FLAT plan elements, of a plan with
 * sums of columns slabs of rows */
void source_c(FILE *f, const KernelPlan *p, const char *name);
/* writes a whole CUDA program with the kernel `fused`. Its arguments are the
 * number of rows (FLAT: of elements), the pointers, the numbers. The first is
 * unsigned if source_has_short_index, else size_t */
void source_cuda(FILE *f, const KernelPlan *p);
/* do 32 bits hold every index of the kernel? */
bool source_has_short_index(const KernelPlan *p);
/* packs of a row that each of its row_threads(C) threads has */
size_t source_packs(const KernelPlan *p);

// declare the writer
typedef struct Writer {
	FILE *f;
	const KernelPlan *p;
	bool cuda;
	int depth;                      /* of the lines' indentation */
	/* CUDA: loads of nodes and stores that move four elements at once */
	bool packed[MOST_NODES], store_packed[MOST_STORES];
} Writer;

void source_indent(const Writer *w);
/* writes one line at the present depth */
void source_line(const Writer *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* writes the nodes of a row, or of the kernel, that are known after `stage`
 * loops */
void source_row(const Writer *w, int stage);
/* writes what the loop computes for element i and adds to its folds. The
 * fold of node v is the variable r, v, and `into`. A held value of node v is
 * element `held` of the array h, v; the loop reads some of these and writes
 * its own */
void source_element(const Writer *w, int loop, const char *into,
	const char *held);
/* writes the address expression of element i: array (a or s), number,
 * [index] */
void source_access(const Writer *w, char array, int number, const Access *a);
/* writes the condition of comparison v */
void source_comparison(const Writer *w, int v);
/* does the loop make store s? */
bool source_stored(const KernelPlan *p, int s, int loop);
/* calls put for each store of the loop, with the store's number and the name of
 * its value; put writes the rest of the line */
void source_stores(const Writer *w, int loop, void (*put)(const Writer *w, int s,
	const Store *made, const char *name));
/* is node v a live fold of rows that the loop completes? */
bool source_folds(const KernelPlan *p, int v, int loop);

#endif
