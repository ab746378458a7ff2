/* group.h: processes that work together: what they write, and how they end */
#ifndef BENCH_GROUP_H
#define BENCH_GROUP_H

#include <stdio.h>

/* exit status of a process that ran out of memory; its last line says of what */
enum { EXIT_OUT_OF_MEMORY = 99, MOST_RANKS = 64, DOING = 96 };

/* KILLED: a process alone was ended by SIGKILL, and not by us */
typedef enum { ENDED_WELL, OUT_OF_MEMORY, KILLED, FAILED } End;
typedef struct Outcome {
	End end;
	int rank;                 /* the rank that did not end well */
	char how[160];            /* FAILED: "signal 9, in all-reduce 17" */
	/* whole lines of rank 0, and behind them the last line of another rank
	 * that ran out of memory; the caller frees them */
	char *lines;
} Outcome;

/* the body of each process, which may write what it does into the DOING bytes
 * at `doing` */
typedef void GroupBody(void *arg, int rank, char *doing, FILE *to);

/* calls body in `ranks` processes and waits for them. They end well if each
 * writes a line and exits with 0. Soon after the first that does not, or after
 * limit_s seconds (0: never), all are killed */
Outcome group_run(int ranks, int limit_s, GroupBody *body, void *arg);

#endif
