/* kernel_plan.h: how a kernel does a group: what it keeps and stores, and when */
#ifndef JIT_KERNEL_PLAN_H
#define JIT_KERNEL_PLAN_H

#include "jit/fusion_group.h"

typedef enum { FLAT, HELD_ROW, LOOPED_ROW } KernelShape;
/* how often a node is computed: once, once for each row, for each element */
typedef enum { LEVEL_ALL, LEVEL_ROW, LEVEL_ELEMENT } Level;

// declare a plan
enum { MOST_POINTERS = 2 * MOST_NODES + MOST_STORES + 1 };

typedef struct KernelPlan {
	FusionGroup g;
	KernelShape shape;
	size_t rows, C;                 /* FLAT: C is 0 */
	int nloops;
	uint64_t live;                  /* nodes that something depends on */
	uint64_t loop[MOST_STAGES];     /* computed for each element in a loop */
	uint64_t held;                  /* kept from one loop to the later ones */
	uint64_t taken[MOST_STAGES];    /* the held nodes that a loop reads */
	Level level[MOST_NODES];
	int guard[MOST_NODES];          /* the comparison that guards a load; -1 */
	/* the loop that makes the store for each element; -1: it is made once for
	 * each row, after the loops */
	int store_loop[MOST_STORES];
	bool columns;                   /* are there sums of columns? */
} KernelPlan;

/* plans a group that is not empty */
void   plan_make(KernelPlan *p, const FusionGroup *g);
/* plans a group with folds of rows and no sums of columns; the rows are looped,
 * whatever their length */
void   plan_make_looped(KernelPlan *p, const FusionGroup *g);
/* the kernel's arguments, pointers first and then numbers; return how many */
int    plan_pointers(const KernelPlan *p, void *at[MOST_POINTERS]);
int    plan_numbers(const KernelPlan *p, double x[MOST_NODES]);
/* bytes that the kernel moves; loads under a guard are counted in full */
double plan_bytes(const KernelPlan *p);

static inline bool plan_has(uint64_t set, int node)
{
	return set >> node & 1;
}

#endif
