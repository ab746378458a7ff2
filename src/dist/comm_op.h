/* comm_op.h: a collective or a message in the communication queue */
#ifndef DIST_COMM_OP_H
#define DIST_COMM_OP_H

#include "ops/array.h"

typedef enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, EXCHANGE, ALL_TO_ALL,
	BROADCAST, SEND, RECEIVE, NCOLLECTIVES } Collective;
extern const char *const collective_names[NCOLLECTIVES];
#define MESSAGES ((uint64_t)1 << 63)

typedef struct CommOp {
	Collective kind;
	Array x;
	size_t n;
	int peer;                        /* root, destination or source */
	const char *what;
	int index;
	/* collectives are numbered 1, 2, ...; the messages from one rank to
	 * another MESSAGES + 1, ... */
	uint64_t number;
	/* exchanges and all-to-alls: the start of rank 0's array; the bytes
	 * from one array to the next, and from its start to the place of the
	 * data */
	char *parts;
	size_t stride, skipped;
} CommOp;

/* "all-reduce 17 (bucket 3, 25 MB)"; the same on all ranks that take part */
enum { OPERATION_TEXT = 96 };
void operation_text(char text[OPERATION_TEXT], const CommOp *op, int rank);

#endif
