/* harness.h: one harness for all experiments: options, plan, table, resumption,
 * progress, failures */
#ifndef EXPERIMENTS_HARNESS_H
#define EXPERIMENTS_HARNESS_H

#include "base/options.h"
#include "device/device.h"

typedef struct Plan Plan;
/* key cells, tabs between */
void plan_add(Plan *plan, const char *format, ...) __attribute__((format(printf,
	2, 3)));

/* one row; its keys are filled in, run() fills the values */
typedef struct Row Row;
const char *row_text(const Row *row, const char *column);
long        row_int(const Row *row, const char *column);
void        row_set(Row *row, const char *column, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* for a run that makes several rows; else the row is emitted at its end */
void        row_emit(Row *row);

/* one table that the program can make */
typedef struct Sweep {
	const char *name;         /* --sweep NAME; NULL ends a list of sweeps */
	const char *keys;         /* "size context": columns that name a row */
	const char *values;       /* "fwd_ms fwd_sd_ms": columns that run() fills;
	                           * the harness adds a last one, status */
	void (*plan)(Plan *plan);
	void (*run)(Row *row);
} Sweep;

typedef struct Experiment {
	const char *name;         /* the problem's name */
	const char *about;        /* one line for --help */
	const Option *options;    /* the program's own, or NULL */
	const Sweep *sweeps;      /* without --sweep, the first */
	/* "small (how it is scaled down)"; NULL: always at the course's scale */
	const char *(*scale)(void);
	bool cpu_only;            /* what it measures exists only there */
} Experiment;

extern long harness_seed;

int     harness_main(const Experiment *experiment, int argc, char **argv);
/* the device of --device; running out of its memory ends the row as oom */
Device *harness_device(void);
bool    harness_on_gpu(void);
/* --force: files that are there may be replaced, whatever they hold */
bool    harness_forced(void);

#endif
