/* comm_op.h: a collective or a message in the communication queue */
#ifndef DIST_COMM_OP_H
#define DIST_COMM_OP_H

#include "dist/collective.h"
#include "ops/array.h"

#define MESSAGES ((uint64_t)1 << 63)

typedef struct CommOp {
	Collective kind;
	Array x;
	size_t n;
	int peer;                        /* root, destination or source */
	const char *what;
	int index;
	/* collectives: 1, 2, ...; messages between two ranks: MESSAGES + 1, ... */
	uint64_t number;
	/* exchanges and all-to-alls: the start of rank 0's array; bytes from one
	 * array to the next; bytes from an array's start to the data */
	char *parts;
	size_t stride, skipped;
} CommOp;
/* "all-reduce 17 (bucket 3, 25 MB)"; the same on all ranks that take part */
enum { OPERATION_TEXT = 96 };
void operation_text(char text[OPERATION_TEXT], const CommOp *op, int rank);

#endif
