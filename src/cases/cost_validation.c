#include "cases/cost_validation.h"

#include <math.h>
#include <string.h>

#include "cases/cost_predictions.h"
#include "estimate/cost_map.h"

// list constants
void run_constants(Row *row, const void *config)
{
	int folder = ((const MachineConfig *)config)->folder;
	const CostFit *f = cost_fitted(folder);
	const CostMachine *m = &f->machine;
	const PredictionErrors said = prediction_errors(folder);
	const struct { const char *name; double value; const char *unit; } all[] = {
		{ "matmuls", m->TFLOPs, "TFLOP/s" }, { "memory", m->GBps, "GB/s" },
		{ "forward", m->forward_us, "us a block" },
		{ "backward", m->backward_us, "us a block" },
		{ "call", m->call_us, "us" },
		{ "link", m->near.GBps, "GB/s" },
		{ "halves of an all-reduce", m->byte_cost[COST_ALL_GATHER], "relative" },
		{ "call of a broadcast, besides", m->broadcast_us, "us" },
		{ "sums", m->sum_ms_per_GB, "ms a GB" },
		{ "stretch of compute", m->stretch.compute, "1" },
		{ "stretch of comm.", m->stretch.comm, "1" },
		{ "error of collectives", f->alone_rms, "1" },
		{ "error of steps", f->step_rms, "1" },
		{ "predicted steps", said.predicted, "steps" },
		{ "of these measured", said.n, "steps" },
		{ "their median error", said.median, "1" },
		{ "their largest error", said.largest, "1" },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		row_set(row, "constant", "%s", all[i].name);
		row_set(row, "value", "%.5g", all[i].value);
		row_set(row, "unit", "%s", all[i].unit);
		row_set(row, "size", "%s", f->size);
		row_set(row, "precision", "%s", f->precision);
		row_set(row, "via", "%s", f->via);
		row_set(row, "rows", "%d", f->rows);
		row_emit(row);
	}
}

// predict collectives
static void set_error(Row *row, const char *column, double predicted,
	double measured)
{
	row_set(row, column, "%.4f", predicted / measured - 1);
}

// predict each collective of a machine
void run_collectives(Row *row, const void *config)
{
	const MachineConfig *c = config;
	const Measurements *s = cost_measurements(c->folder);
	for (int i = 0; i < s->ncollectives; i++) {
		const MeasuredCollective *x = &s->collectives[i];
		CostMachine m = cost_fitted(c->folder)->machine;
		bool used = x->ranks == FIT_RANKS && strcmp(x->dtype, "fp32") == 0
			&& cost_fit_size(x->nbytes);
		if (!cost_fit_collective(s, x, &m))
			continue;
		double ms = cost_collective(&m, x->what,
			(CostGroup){ x->ranks, x->ranks }, x->nbytes);
		row_set(row, "device", "%s", x->device);
		row_set(row, "transport", "%s", x->transport);
		row_set(row, "collective", "%s", x->name);
		row_set(row, "dtype", "%s", x->dtype);
		row_set(row, "ranks", "%ld", x->ranks);
		row_set(row, "bytes", "%.0f", x->nbytes);
		row_set(row, "role", "%s", used ? "fitted" : "checked");
		row_set(row, "measured_ms", "%.5g", x->time_ms);
		row_set(row, "predicted_ms", "%.5g", ms);
		set_error(row, "error", ms, x->time_ms);
		row_emit(row);
	}
}

// predict steps
static void set_unfitted(Row *row, const CostFit *f, const MeasuredStep *s)
{
	CostRun r = s->run;
	bool any = strcmp(s->precision, f->precision) == 0;
	r.fwd_ms = r.bwd_ms = r.opt_ms = 0;
	double ms = any ? cost_step(&f->machine, &r).step_ms : 0;
	row_set(row, "unaided_ms", any ? "%.4f" : "-", ms);
	row_set(row, "unaided_error", any ? "%.4f" : "-", ms / s->step_ms - 1);
}

// find the time of a step's collectives alone
/* ms of the collectives that a table times alone; of groups those of the group */
static double single_rank_ms(const CostMachine *m, const CostRun *r)
{
	if (r->tensor == 1)
		return cost_alone(m, r);
	QueueSchedule s = cost_schedule(m, r, 1);
	double ms = schedule_sum(&s, TENSOR_QUEUE);
	schedule_free(&s);
	return ms;
}

// predict one step
static void predict_step(Row *row, int folder, const MeasuredStep *s)
{
	const CostFit *f = cost_fitted(folder);
	const CostRun r = cost_fit_run(f, s);
	double ms = cost_step(&f->machine, &r).step_ms,
		before = prediction_before(folder, s);
	row_set(row, "on", "%s", s->on);
	row_set(row, "of", "%s", s->table);
	cost_set_step(row, s);
	row_set(row, "bucket_mb", "%g", s->run.bucket_mb);
	row_set(row, "wire", "%s", s->wire);
	row_set(row, "role", "%s", cost_fit_used(f, s) ? "fitted"
		: before > 0 ? "predicted" : "checked");
	row_set(row, "single_ms", "%.4f", r.fwd_ms + r.bwd_ms + r.opt_ms);
	row_set(row, "measured_ms", "%.4f", s->step_ms);
	row_set(row, "predicted_ms", "%.4f", ms);
	set_error(row, "error", ms, s->step_ms);
	row_set(row, "alone_ms", s->alone_ms > 0 ? "%.4f" : "-", s->alone_ms);
	row_set(row, "predicted_alone_ms", "%.4f", single_rank_ms(&f->machine, &r));
	set_unfitted(row, f, s);
	row_set(row, "ahead_ms", before > 0 ? "%.4f" : "-", before);
	row_set(row, "ahead_error", before > 0 ? "%.4f" : "-",
		before / s->step_ms - 1);
	row_emit(row);
}

// predict each step of a machine
void run_steps(Row *row, const void *config)
{
	int folder = ((const MachineConfig *)config)->folder;
	const Measurements *s = cost_measurements(folder);
	const CostFit *f = cost_fitted(folder);
	for (int i = 0; i < s->nsteps; i++) {
		const MeasuredStep *x = &s->steps[i];
		if (x->run.fwd_ms > 0 && x->run.data * x->run.tensor > 1
			&& (x->divided || strcmp(x->via, f->via) == 0))
			predict_step(row, folder, x);
	}
}

// predict memory
void run_memory(Row *row, const void *config)
{
	const Measurements *s
		= cost_measurements(((const MachineConfig *)config)->folder);
	for (int i = 0; i < s->nsteps; i++) {
		const MeasuredStep *x = &s->steps[i];
		double MiB = cost_memory(&x->run) / 0x1p20;
		if (!(x->peak_MiB > 0))
			continue;
		cost_set_step(row, x);
		row_set(row, "measured_MiB", "%.2f", x->peak_MiB);
		row_set(row, "predicted_MiB", "%.2f", MiB);
		set_error(row, "error", MiB, x->peak_MiB);
		row_emit(row);
	}
	if (!row->emitted)
		row_skip(row, "no table of memory");
}

// predict public runs
static double published_as(const PublishedRun *p, double efficiency,
	CostStep *step)
{
	const CostFit *f = cost_fitted(0);
	const CostReached reached = cost_reached(&f->machine, cost_sheet("H200"));
	CostMachine m = cost_machine(cost_sheet(p->hardware), &reached);
	m.TFLOPs *= efficiency;
	CostStep s = cost_step(&m, &p->run);
	if (step)
		*step = s;
	return published_value(p, s.step_ms);
}

// find the efficiency that meets a published value
static double efficiency_of(const PublishedRun *p)
{
	double low = 0.01, high = 100;
	for (int i = 0; i < 60; i++) {
		double middle = sqrt(low * high), value = published_as(p, middle, NULL);
		bool fast = p->unit == PUBLISHED_SECONDS ? value < p->value
			: value > p->value;
		*(fast ? &high : &low) = middle;
	}
	return sqrt(low * high);
}

// set the cells of a published run
static void set_published(Row *row, const PublishedRun *p, bool first)
{
	static const char *const units[] = { CHOICE_NAMES(PUBLISHED_UNITS_OF) };
	row_set(row, "cited", "%s", p->cited);
	row_set(row, "role", "%s", first ? "fitted" : "checked");
	row_set(row, "model", "%s", p->model);
	row_set(row, "hardware", "%s", p->hardware);
	row_set(row, "devices", "%ld", p->devices);
	row_set(row, "data", "%ld", p->run.data);
	row_set(row, "tensor", "%ld", p->run.tensor);
	row_set(row, "parts", "%ld", p->run.parts);
	row_set(row, "stages", "%ld", p->run.stages);
	row_set(row, "microbatches", "%ld", p->run.microbatches);
	row_set(row, "unit", "%s", units[p->unit]);
	row_set(row, "value", "%g", p->value);
}

static void set_published_step(Row *row, const CostStep *s)
{
	row_set(row, "step_ms", "%.1f", s->step_ms);
	row_set(row, "compute_ms", "%.1f", s->compute_ms);
	row_set(row, "comm_ms", "%.1f", s->comm_ms);
	row_set(row, "bubble_ms", "%.1f", s->bubble_ms);
	row_set(row, "GB", "%.1f", s->nbytes * 1e-9);
}

// predict all runs of a source
void run_published(Row *row, const void *config)
{
	const SourceConfig *c = config;
	PublishedRun first = published_run(c->first);
	int n = 1;
	while (c->first + n < published_count()
		&& strcmp(published_run(c->first + n).source, c->source) == 0)
		n++;
	PublishedRun middle = published_run(c->first + n / 2);
	double e = efficiency_of(&first), g = efficiency_of(&middle);
	for (int i = 0; i < n; i++) {
		PublishedRun p = published_run(c->first + i);
		CostStep step;
		double value = published_as(&p, e, &step),
			other = published_as(&p, g, NULL);
		set_published(row, &p, i == 0);
		row_set(row, "first_efficiency", "%.4f", e);
		row_set(row, "predicted", "%.5g", value);
		set_error(row, "error", value, p.value);
		row_set(row, "middle_efficiency", "%.4f", g);
		row_set(row, "middle_predicted", "%.5g", other);
		set_error(row, "middle_error", other, p.value);
		set_published_step(row, &step);
		row_emit(row);
	}
}
