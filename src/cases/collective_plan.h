/* collective_plan.h: what the programs that time collectives have in common:
 * options, sizes, and the run of a configuration */
#ifndef CASES_COLLECTIVE_PLAN_H
#define CASES_COLLECTIVE_PLAN_H

#include "bench/harness.h"
#include "cases/collective_case.h"
#include "cases/collective_peers.h"

enum { MOST_SIZES = 16 };

/* the choice of the options; 0, NULL or -1: everything */
typedef struct CollectiveWish {
	const char *transport, *bytes;
	int dtype;
	long ranks, runs;
	bool full;
} CollectiveWish;
extern CollectiveWish collective_wish;
#define COLLECTIVE_OPTIONS                                                     \
	TRANSPORT_OPTION_AS(&collective_wish.transport, OPT_TEXT, "NAME",          \
		"this one only: of " TRANSPORTS ", or a peer"),                        \
	{ "dtype", OPT_CHOICE, &collective_wish.dtype, COMMON_TYPES,               \
		"this format only" },                                                  \
	RANKS_OPTION_IN(&collective_wish.ranks, "1..64", "so many ranks only"),    \
	{ "bytes", OPT_TEXT, &collective_wish.bytes, "LIST",                       \
		"sizes of the array, commas between" },                                \
	{ "full", OPT_FLAG, &collective_wish.full, "",                             \
		"also on a CPU: sizes up to 1 GB, 2, 4 and 6 ranks" },                 \
	RUNS_OPTION_FOR(&collective_wish.runs, "measured runs of a size, at most")

/* whether mpirun or srun started this process */
bool collective_in_job(void);
/* whether the options leave a configuration of this kind */
bool collective_wanted(const char *transport, Type type, long ranks);
/* exits 2 when n, the number of planned configurations, is 0, or when the sizes
 * asked for are none */
void collective_expect(int n);
/* emits all rows of a configuration; called by a process for each rank */
void collective_run(Row *row, int collective, const char *transport, Type type,
	double most);
/* the case for a peer; sizes: room that is used as long as the case is */
PeerCase collective_peer_case(const char *device, Type type, long ranks,
	double most, long sizes[MOST_SIZES]);

#endif
