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

/* of how many devices, and which pass, a layer is split how */
typedef Ffn Layout(const Setting *s, size_t N);

extern const Option bounds_options[];
/* a row for each machine and word of `cases`, or for that of the options;
 * rates that are no machine, and bounds too large to try, are usage errors */
void    bounds_plan(Plan *plan, const char *cases);
Setting bounds_setting(Row *row);           /* sets its columns too */
Pass    bounds_pass(const Row *row);        /* of the column `pass` */

/* seconds of computing; seconds of sending along both axes, overlapped or not */
double  compute_time(const Setting *s, Cost cost);
double  send_time(const Setting *s, Cost cost, bool overlapped);
/* sending takes no longer than computing */
bool    compute_bound(const Setting *s, Cost cost, bool overlapped);

/* columns of a table of bounds, and of one of schedules; their keys */
#define SETTING_VALUES "TFLOPs GBps batch d_model d_ff"
#define BOUND_VALUES SETTING_VALUES " bound N compute_ms send_ms " \
	"next_compute_ms next_send_ms"
#define SCHEDULE_KEYS "X Y batch d_model d_ff pass"
#define SCHEDULE_VALUES "flops flops_counted x_nbytes x_counted y_nbytes " \
	"y_counted"

/* the closed form `bound` against every N from 1 to beyond it, by formula:
 * dies if they differ. Beside it the times, in ms, of an explicit schedule at
 * the largest N and at N + 1, left out above 4096 devices */
void    bound_row(Row *row, Layout *layout, Pass pass, double bound);
/* times against the number of devices, by formula */
#define CURVE_KEYS "hardware pass N"
#define CURVE_VALUES SETTING_VALUES " compute_ms send_ms"
void    curve_plan(Plan *plan, const char *cases);
void    curve_row(Row *row, Layout *layout);
/* layouts of small layers, run with data */
void    schedule_plan(Plan *plan, const char *meshes);
void    schedule_row(Row *row, bool sharded);

#endif
