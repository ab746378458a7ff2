/* counters.h: hardware counters of kernels, as Nsight Compute prints them */
#ifndef PROFILE_COUNTERS_H
#define PROFILE_COUNTERS_H

#include <stddef.h>

#include "base/choices.h"

/* columns of a table, with their units in the names */
#define COUNTERS_OF(FIRST, NEXT) \
	FIRST(LAUNCH_US, "launch_us") NEXT(SM_GHZ, "SM_GHz") \
	NEXT(TENSOR_PCT, "tensor_pct") NEXT(FP32_PCT, "fp32_pct") \
	NEXT(XU_PCT, "xu_pct") NEXT(SMEM_PCT, "smem_pct") \
	NEXT(L2_PCT, "l2_pct") NEXT(DRAM_PCT, "dram_pct") \
	NEXT(DRAM_GBPS, "dram_GBps") NEXT(OCCUPANCY_PCT, "occupancy_pct") \
	NEXT(REGISTERS, "registers")
enum { CHOICE_IDS(COUNTERS_OF) NCOUNTERS, NSTALLS = 3 };
extern const char *const counter_columns[NCOUNTERS];

/* a reason why warps could not issue, and its part of their time in percent */
typedef struct Stall { char reason[40]; double pct; } Stall;

typedef struct KernelCounters {
	char name[96];
	int launches;
	double us;                       /* of all launches together */
	double values[NCOUNTERS];        /* medians over launches; NaN: not counted */
	Stall stalls[NSTALLS];           /* the longest first; reason "": no more */
} KernelCounters;

/* fills in the kernels of what `ncu --csv --page raw` printed: the first
 * `most` that were launched, the one that takes the most time first. Returns
 * how many; -1: there are none, or the text is damaged, and `why` holds the
 * reason in a line */
int counters_parse(KernelCounters *kernels, int most, const char *text, char *why,
	size_t size);

#endif
