/* group.h: operations that one kernel will do, while they are recorded */
#ifndef JIT_GROUP_H
#define JIT_GROUP_H

#include "ops/elementary.h"

enum { MOST_NODES = 64, MOST_STORES = 32, MOST_ARRAYS = 16, MOST_STAGES = 8,
	LONGEST_HELD = 32768,           /* elements of a row */
	LONGEST_SUMMED = 16384 };       /* and of one whose columns are summed */

// declare an access to memory
typedef struct Access {
	char *at;               /* of element 0 */
	Type type;
	Index index;            /* from an element of the group */
	/* to be added to it, each of them one of ints, at index who; NULL: none */
	const int32_t *ints;
	Index who;
	size_t nbytes;          /* from `at`, all that may be touched */
	size_t moved;           /* bytes of the elements that are */
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
typedef struct Group {
	size_t n, C;                    /* elements; columns, 0: no row is known */
	int noperations, nnodes, nstores;
	const int32_t *skip;
	size_t (*width)(Type type);     /* bytes of an element */
	Type native;                    /* of what is computed: is not rounded */
	double bytes;                   /* that the operations move one at a time */
	Node nodes[MOST_NODES];
	Store stores[MOST_STORES];
} Group;

/* an empty group */
void        group_init(Group *g, size_t (*width)(Type type), Type native);
/* adds an operation, or says why it cannot be added; NULL: it was. What an empty
 * group does not take has to be done alone: sums of columns of rows longer than
 * LONGEST_SUMMED, and results that overlap an operand at another place */
const char *group_join(Group *g, const Elementary *e);
/* does it read or write an array of the group? Single numbers that it reads
 * do not count */
bool        group_shares(const Group *g, const Elementary *e);
/* memory that is freed need not be written; does the group touch it? */
bool        group_drop(Group *g, const void *at, size_t nbytes);

#endif
