/* plan.h: how a kernel does a group: what it keeps, what it stores, and when */
#ifndef JIT_PLAN_H
#define JIT_PLAN_H

#include "jit/group.h"

typedef enum { FLAT, HELD_ROW, LOOPED_ROW } KernelShape;
/* one for all, one a row, one an element */
typedef enum { LEVEL_ALL, LEVEL_ROW, LEVEL_ELEMENT } Level;

// declare a plan
enum { MOST_POINTERS = 2 * MOST_NODES + MOST_STORES + 1 };

typedef struct Plan {
	Group g;
	KernelShape shape;
	size_t rows, C;                 /* FLAT: C is 0 */
	int nloops;
	uint64_t live;                  /* nodes that something depends on */
	uint64_t loop[MOST_STAGES];     /* computed for each element in a loop */
	uint64_t held;                  /* kept from one loop to the later ones */
	uint64_t taken[MOST_STAGES];    /* of them, what a loop reads */
	Level level[MOST_NODES];
	int guard[MOST_NODES];          /* of loads: a comparison, or -1 */
	/* the loop that stores it for each element; -1: after the loops, for rows */
	int store_loop[MOST_STORES];
	bool columns;                   /* are there sums of columns? */
} Plan;

/* of a group that is not empty */
void   plan_make(Plan *p, const Group *g);
/* the same for a group with folds of rows and no sums of columns, whose rows are
 * looped whatever their length */
void   plan_make_looped(Plan *p, const Group *g);
/* what a kernel is given: pointers first, numbers after them */
int    plan_pointers(const Plan *p, void *at[MOST_POINTERS]);
int    plan_numbers(const Plan *p, double x[MOST_NODES]);
/* bytes that the kernel moves, loads under a guard counted whole */
double plan_bytes(const Plan *p);

static inline bool plan_has(uint64_t set, int node)
{
	return set >> node & 1;
}

#endif
