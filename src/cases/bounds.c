#include "cases/bounds.h"

#include <math.h>

#include "base/error.h"

// list machines and options
/* data sheets: dense bf16 TFLOP/s; GB/s that one device sends */
static const Hardware sheets[MACHINES] = {
	{ "H100 NVLink", 989, 450 },    /* 18 links of 25 GB/s each way */
	{ "H100 NIC", 989, 50 },        /* one port of 400 Gbit/s for each GPU */
	{ "B200 NVLink", 2250, 900 },
	{ "TPU v5p", 460, 180 },        /* one axis of the torus, both ways */
};
enum { MOST_TRIED = 10000000 };

// name the options of bounds
static double TFLOPs = 0, GBps = 0;         /* 0: all machines */
static long batch = 1 << 20, d_model = 2560, d_ff = 10240;

const Option bounds_options[] = {
	TFLOPS_OPTION(&TFLOPs, "of one device, with --GBps: this machine alone"),
	GBPS_OPTION(&GBps, "egress bandwidth of one device"),
	BATCH_OPTION_IN(&batch, "1..1099511627776", "rows (tokens) in all"),
	D_MODEL_OPTION(&d_model, "1..1048576", "width of the model"),
	D_FF_OPTION(&d_ff, "1..1048576", "width of the layer"),
	{ 0 }
};

static bool in_range(double rate)
{
	return rate >= 1e-6 && rate <= 1e9;
}

// choose machines
static void expect_few_devices(const Hardware *m)
{
	double x = m->GBps / m->TFLOPs * 1e-3,
		most = (1 + batch * x) * (1 + 3 * d_ff * x);
	if (most > MOST_TRIED)
		usage_error("this machine and layer have bounds of up to %.3g "
			"devices: too many to try", most);
}

// list the machines that are asked for
int bounds_machines(Hardware machines[MACHINES])
{
	bool custom = TFLOPs != 0 || GBps != 0;
	if (custom && !(in_range(TFLOPs) && in_range(GBps)))
		usage_error("a machine needs both --TFLOPs and --GBps, 1e-6 to 1e9");
	for (int i = 0; i < (custom ? 1 : MACHINES); i++) {
		machines[i] = custom ? (Hardware){ "custom", TFLOPs, GBps } : sheets[i];
		expect_few_devices(&machines[i]);
	}
	return custom ? 1 : MACHINES;
}

BoundSetting bounds_setting(Row *row, const Hardware *m)
{
	row_set(row, "TFLOPs", "%g", m->TFLOPs);
	row_set(row, "GBps", "%g", m->GBps);
	row_set(row, "batch", "%ld", batch);
	row_set(row, "d_model", "%ld", d_model);
	row_set(row, "d_ff", "%ld", d_ff);
	return (BoundSetting){ m->TFLOPs * 1e12, m->GBps * 1e9, batch, d_model,
		d_ff };
}

// compare sending with computing
double compute_time(const BoundSetting *s, FfnCost cost)
{
	return cost.flops / s->C;
}

double send_time(const BoundSetting *s, FfnCost cost, bool overlapped)
{
	double x = cost.nbytes[AXIS_X] / s->W, y = cost.nbytes[AXIS_Y] / s->W;
	return overlapped ? fmax(x, y) : x + y;
}

bool compute_bound(const BoundSetting *s, FfnCost cost, bool overlapped)
{
	/* equal times count as compute-bound, whatever their last bits */
	return send_time(s, cost, overlapped) <= compute_time(s, cost)*(1 + 1e-12);
}

// run small layers
/* shapes that every mesh here divides, and some that it does not */
static const long shapes[][3] = { { 120, 60, 120 }, { 7, 10, 13 } };
const Key schedule_keys[] = { KEY(ScheduleConfig, X), KEY(ScheduleConfig, Y),
	KEY(ScheduleConfig, batch), KEY(ScheduleConfig, d_model),
	KEY(ScheduleConfig, d_ff),
	KEY(ScheduleConfig, pass, FFN_PASSES), { 0 } };

void schedule_plan(Plan *plan, const long (*meshes)[2], int nmeshes)
{
	for (int s = 0; s < 2; s++)
		for (int i = 0; i < nmeshes; i++)
			for (FfnPass pass = FORWARD; pass < PASSES; pass++)
				plan_add(plan, &(ScheduleConfig){ meshes[i][0], meshes[i][1],
					shapes[s][0], shapes[s][1], shapes[s][2], pass });
}

// run a small layer and compare its counts
void schedule_row(Row *row, const ScheduleConfig *s, bool sharded)
{
	FfnCost counted[PASSES];
	const Ffn f = { .B = s->batch, .D = s->d_model, .F = s->d_ff,
		.gated = true, .X = s->X, .Y = s->Y, .sharded = sharded };
	ffn_run(&f, counted);
	FfnCost formula = ffn_cost(&f, s->pass), count = counted[s->pass];
	bool divides = f.B % f.X == 0 && f.D % f.X == 0 && f.F % f.Y == 0
		&& f.B / f.X * f.D % f.Y == 0;
	if (divides && (fabs(formula.flops - count.flops) > 0.5
		|| fabs(formula.nbytes[AXIS_X] - count.nbytes[AXIS_X]) > 0.5
		|| fabs(formula.nbytes[AXIS_Y] - count.nbytes[AXIS_Y]) > 0.5))
		die("%g FLOPs were counted, not %g; %g and %g bytes, not %g and %g",
			count.flops, formula.flops, count.nbytes[AXIS_X],
			count.nbytes[AXIS_Y], formula.nbytes[AXIS_X],
			formula.nbytes[AXIS_Y]);
	row_set(row, "flops", "%.10g", formula.flops);
	row_set(row, "flops_counted", "%.10g", count.flops);
	row_set(row, "x_nbytes", "%.10g", formula.nbytes[AXIS_X]);
	row_set(row, "x_counted", "%.10g", count.nbytes[AXIS_X]);
	row_set(row, "y_nbytes", "%.10g", formula.nbytes[AXIS_Y]);
	row_set(row, "y_counted", "%.10g", count.nbytes[AXIS_Y]);
}
