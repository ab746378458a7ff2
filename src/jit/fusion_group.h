/* fusion_group.h: operations that one kernel will do, while they are recorded */
#ifndef JIT_FUSION_GROUP_H
#define JIT_FUSION_GROUP_H

#include "ops/elementary.h"

enum { MOST_NODES = 64, MOST_STORES = 32, MOST_ARRAYS = 16, MOST_STAGES = 8,
	LONGEST_HELD = 32768,           /* elements of a row that is held */
	LONGEST_SUMMED = 16384 };       /* of a row whose columns are summed */

// declare an access to memory
typedef struct Access {
	char *at;               /* of element 0 */
	Type type;
	Index index;            /* from an element of the group */
	/* an integer to be added to that index, for element i ints[ints_index(i)];
	 * NULL: none */
	const int32_t *ints;
	Index ints_index;
	size_t nbytes;          /* from `at` to the last element's end */
	size_t moved;           /* bytes of the elements that are touched */
} Access;

/* the same element of memory for every element of the group? */
bool access_same(const Access *a, const Access *b);

// declare the nodes of a group
typedef enum { LOAD, CONSTANT, COMPARISON, FORMULA, ROUNDED, FOLDED } NodeKind;

typedef struct Node {
	NodeKind kind;
	Opcode op;                      /* FORMULA */
	Fold fold;                      /* FOLDED */
	Type type;                      /* ROUNDED */
	int n, in[MOST_OPERANDS];       /* operands */
	int stage;
	double number;                  /* CONSTANT */
	Access from;                    /* LOAD */
	Operand compare;                /* COMPARISON, by indices of the group */
} Node;

typedef struct Store {
	int node;
	Access to;
	bool dead;                      /* overwritten, or its array was freed */
	bool columns;                   /* to += the sum of the node over rows */
} Store;

// declare a group
typedef struct FusionGroup {
	size_t n, C;                    /* elements; columns, 0: no fold yet */
	int noperations, nnodes, nstores;
	const int32_t *skip;
	size_t (*width)(Type type);     /* bytes of an element */
	Type native;                    /* type of arithmetic, unrounded */
	double bytes;                   /* moved if operations ran one at a time */
	Node nodes[MOST_NODES];
	Store stores[MOST_STORES];
} FusionGroup;

/* an empty group */
void        fusion_init(FusionGroup *g, size_t (*width)(Type type),
	Type native);
/* adds an operation and returns NULL, or returns why it cannot be added and
 * leaves the group as it was. An operation that even an empty group refuses
 * has to be done alone: sums of columns of rows longer than LONGEST_SUMMED,
 * and results that overlap an operand at another place */
const char *fusion_join(FusionGroup *g, const Elementary *e);
/* does the operation read or write an array of the group? Scalars that it reads
 * do not count */
bool        fusion_shares(const FusionGroup *g, const Elementary *e);
/* stores to these nbytes are dropped, as the memory is being freed; returns
 * whether the group reads or writes there */
bool        fusion_drop(FusionGroup *g, const void *at, size_t nbytes);

#endif
