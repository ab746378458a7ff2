/* comm_op.h: a collective or a message in the communication queue */
#ifndef DIST_COMM_OP_H
#define DIST_COMM_OP_H

#include "ops/array.h"

#define COMM_OPS_OF(FIRST, NEXT) \
	FIRST(ALL_REDUCE, "all-reduce") NEXT(REDUCE_SCATTER, "reduce-scatter") \
	NEXT(ALL_GATHER, "all-gather") NEXT(EXCHANGE, "exchange") \
	NEXT(ALL_TO_ALL, "all-to-all") NEXT(BROADCAST, "broadcast") \
	NEXT(SEND, "send") NEXT(RECEIVE, "receive")
typedef enum { CHOICE_IDS(COMM_OPS_OF) NCOLLECTIVES } Collective;
extern const char *const collective_names[NCOLLECTIVES];
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
