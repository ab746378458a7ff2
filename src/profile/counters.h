/* counters.h: hardware counters of kernels, as Nsight Compute prints them */
#ifndef PROFILE_COUNTERS_H
#define PROFILE_COUNTERS_H

#include <stddef.h>

enum { NCOUNTERS = 11, NSTALLS = 3 };
/* columns of a table, with their units in the names */
extern const char *const counter_columns[NCOUNTERS];

/* why warps could not issue; the part of their time, in percent */
typedef struct Stall { char reason[40]; double pct; } Stall;

typedef struct KernelCounters {
	char name[96];
	int launches;
	double us;                       /* of all launches together */
	double values[NCOUNTERS];        /* median over the launches; NaN: none */
	Stall stalls[NSTALLS];           /* the longest first; "" for no more */
} KernelCounters;

/* kernels in what `ncu --csv --page raw` printed, and how many: the first `most`
 * that were launched; the one that takes the most time comes first. -1: there are
 * none, or the text is damaged, as `why` says in a line */
int counters_parse(KernelCounters *kernels, int most, const char *text, char *why,
	size_t size);

#endif
