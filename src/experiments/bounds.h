/* bounds.h: what the programs about parallel feed-forward layers share: the
 * machines, their options, and the search for the largest number of devices */
#ifndef EXPERIMENTS_BOUNDS_H
#define EXPERIMENTS_BOUNDS_H

#include "experiments/ffn.h"
#include "experiments/harness.h"

typedef struct Setting {
	double C, W;                    /* FLOP/s; egress of a device, bytes/s */
	long B, D, F;
} Setting;

/* a layer split over the devices of one axis, and how many it can use */
typedef struct Bounds {
	const char *name, *about;       /* of the program */
	Axis axis;
	bool sharded;
	const char *passes;             /* "forward backward" */
	/* closed form of the most devices on which a pass is compute-bound */
	double (*most)(const Setting *s, Pass pass);
} Bounds;

/* tables: the closed form against every N from 1 to beyond it, which must
 * agree, with the times of an explicit schedule at the largest N and at N + 1,
 * left out above 4096 devices; times against N, by formula; small layers, run
 * with data */
int     bounds_main(const Bounds *bounds, int argc, char **argv);

extern const Option bounds_options[];
/* a row for each machine and word of `cases`, or for that of the options;
 * rates that are no machine, and bounds too large to try, are usage errors */
void    bounds_plan(Plan *plan, const char *cases);
Setting bounds_setting(Row *row);           /* sets its columns too */

/* seconds of computing; seconds of sending along both axes, overlapped or not */
double  compute_time(const Setting *s, Cost cost);
double  send_time(const Setting *s, Cost cost, bool overlapped);
/* sending takes no longer than computing */
bool    compute_bound(const Setting *s, Cost cost, bool overlapped);

#define SETTING_VALUES "TFLOPs GBps batch d_model d_ff"
/* small layers on meshes such as "2x4 5x3", run with data */
#define SCHEDULE_KEYS "X Y batch d_model d_ff pass"
#define SCHEDULE_VALUES "flops flops_counted x_nbytes x_counted y_nbytes " \
	"y_counted"
void    schedule_plan(Plan *plan, const char *meshes);
void    schedule_row(Row *row, bool sharded);

#endif
