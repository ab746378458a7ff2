/* bounds.h: what the programs about parallel feed-forward layers share: the
 * machines, their options, when a pass is compute-bound, and small layers */
#ifndef CASES_BOUNDS_H
#define CASES_BOUNDS_H

#include "cases/ffn.h"
#include "bench/harness.h"

typedef struct BoundSetting {
	double C, W;                    /* FLOP/s; egress of a device, bytes/s */
	long B, D, F;
} BoundSetting;

typedef struct Hardware {
	const char *hardware;           /* its name: a key */
	double TFLOPs, GBps;
} Hardware;

extern const Option bounds_options[];
/* sets the machines of data sheets, or that of the options, and returns how many;
 * rates that are no machine, and bounds too large to try, are usage errors */
enum { MACHINES = 4 };
int     bounds_machines(Hardware machines[MACHINES]);
/* the layer of the options on this machine; sets its columns */
BoundSetting bounds_setting(Row *row, const Hardware *machine);

/* seconds of computing; seconds of sending along both axes, overlapped or not */
double  compute_time(const BoundSetting *s, FfnCost cost);
double  send_time(const BoundSetting *s, FfnCost cost, bool overlapped);
/* whether sending takes no longer than computing */
bool    compute_bound(const BoundSetting *s, FfnCost cost, bool overlapped);

/* small layers on meshes, run with data */
typedef struct ScheduleConfig {
	long X, Y, batch, d_model, d_ff;
	FfnPass pass;
} ScheduleConfig;
extern const Key schedule_keys[];
void    schedule_plan(Plan *plan, const long (*meshes)[2], int nmeshes);
void    schedule_row(Row *row, const ScheduleConfig *s, bool sharded);

#endif
