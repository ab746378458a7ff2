/* harness.h: one harness for all experiments: options, plan, table, resumption,
 * progress, failures */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include "bench/option_rows.h"
#include "bench/plan.h"
#include "bench/row.h"
#include "device/device.h"

// declare what ranks are joined by
struct Comm;                     /* dist/comm.h */
struct CommSettings;
struct Link;

// declare a sweep
/* one table that the program can make */
typedef struct Sweep {
	const char *name;         /* --sweep NAME; NULL ends a list of sweeps */
	const Key *keys;          /* columns that name a configuration: its fields */
	void (*plan)(Plan *plan);
	/* fills a row, or several, whose columns stand behind the keys, and before
	 * status; a table has all rows of a configuration or none */
	void (*run)(Row *row, const void *config);
	/* how many processes measure a configuration together; NULL: one. Their run
	 * frees what it took, also communicator and device: a process that mpirun
	 * started goes on to the next configuration */
	int  (*ranks)(const void *config);
	/* seconds that a configuration may take; 0: 600 with ranks, else no limit */
	int  limit_s;
	/* fills a row with what memory it would take, on harness_device, which then
	 * is a dry one, as rank 0 of ranks that do not exist. NULL: no --dry */
	void (*dry)(Row *row, const void *config);
} Sweep;
/* an experiment's, with what ends their list */
#define SWEEPS(...) (const Sweep[]){ __VA_ARGS__, { 0 } }

// declare an experiment
typedef struct Experiment {
	const char *about;        /* one line for --help */
	const Option *options;    /* the program's own; NULL: none */
	const Sweep *sweeps;      /* without --sweep, the first */
	/* on a CPU: "small (how it is scaled down)"; NULL: at the course's scale */
	const char *cpu_scale;
	bool (*full_scale)(void); /* do options ask for course scale? NULL: never */
	bool cpu_only;            /* what it measures exists only there */
} Experiment;

/* the program's own: main() in src/bench runs it */
extern const Experiment experiment;
extern long harness_seed;

// declare what the harness does for an experiment
int     harness_main(const Experiment *e, int argc, char **argv);
/* opens the device of --device, anew in each call; on GPUs each rank has a GPU
 * of its own. Running out of its memory ends the row as oom */
Device *harness_device(void);
/* harness_link: a link of the ranks that measure the row together, perhaps
 * of one. harness_comm_over: a communicator over it, or over a part of it
 * (link_split); settings NULL: defaults */
struct Link *harness_link(Row *row);
struct Comm *harness_comm_over(struct Link *link, Device *device,
	const struct CommSettings *settings);
/* a communicator of all ranks of the row */
static inline struct Comm *harness_comm(Row *row, Device *device,
	const struct CommSettings *settings)
{
	return harness_comm_over(harness_link(row), device, settings);
}

bool    harness_on_gpu(void);
/* --force: files that are there may be replaced, whatever they hold */
bool    harness_forced(void);

#endif
