/* power.h: clock, power and temperature of a GPU while it works */
#ifndef BENCH_POWER_H
#define BENCH_POWER_H

#include "bench/row.h"
#include "device/device.h"

typedef struct PowerWatch PowerWatch;
/* means of what was read; NaN: not known */
typedef struct PowerFacts {
	double sm_MHz, watts, celsius;
	double joules;                   /* in all */
	double capped;                   /* part of the time that power or heat
	                                  * held the clock down */
} PowerFacts;

/* starts a thread that reads the GPU; NULL: nothing can be read of this device */
PowerWatch *power_watch(const Device *d);
/* stops the thread, frees the watch and returns the means; NULL: all are NaN */
PowerFacts  power_read(PowerWatch **w);

/* sets the columns sm_MHz, watts, joules_per_step, capped and celsius; of what
 * is NaN to - */
void        row_set_power(Row *row, const PowerFacts *p, int steps);

#endif
