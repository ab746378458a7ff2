/* collective.h: collectives and messages between ranks, by name */
#ifndef DIST_COLLECTIVE_H
#define DIST_COLLECTIVE_H

#include "base/choices.h"

#define COMM_OPS_OF(FIRST, NEXT) \
	FIRST(ALL_REDUCE, "all-reduce") NEXT(REDUCE_SCATTER, "reduce-scatter") \
	NEXT(ALL_GATHER, "all-gather") NEXT(EXCHANGE, "exchange") \
	NEXT(ALL_TO_ALL, "all-to-all") NEXT(BROADCAST, "broadcast") \
	NEXT(SEND, "send") NEXT(RECEIVE, "receive")
typedef enum { CHOICE_IDS(COMM_OPS_OF) NCOLLECTIVES } Collective;
extern const char *const collective_names[NCOLLECTIVES];

#endif
