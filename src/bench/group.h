/* group.h: a group of processes that work together: what they write, and how
 * they end */
#ifndef BENCH_GROUP_H
#define BENCH_GROUP_H

#include <stdio.h>

/* how a process says that it ran out of memory; its last line says of what */
enum { EXIT_OUT_OF_MEMORY = 99, MOST_RANKS = 64 };

typedef enum { ENDED_WELL, OUT_OF_MEMORY, KILLED, FAILED } End;
typedef struct Outcome {
	End end;                  /* KILLED: by SIGKILL, and not by us */
	int rank;                 /* that did not end well */
	char how[48];             /* FAILED: "exit status 3" */
	/* whole lines that rank 0 wrote, and behind them the last one of another
	 * rank that ran out of memory; the caller frees them */
	char *lines;
} Outcome;

/* calls body(arg, rank, to) in `ranks` processes and waits for them. They end
 * well if each writes a line and exits with 0. At the first that does not, or
 * after limit_s seconds (0: never), all are killed */
Outcome group_run(int ranks, int limit_s,
	void (*body)(void *arg, int rank, FILE *to), void *arg);

#endif
