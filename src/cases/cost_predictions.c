#define _GNU_SOURCE
#include "cases/cost_predictions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/stats.h"
#include "base/table_reader.h"

// find what was predicted
enum { DATE = sizeof "2026-01-01T00:00:00Z" - 1 };

static Records *open_predicted(int folder)
{
	char *path;
	if (asprintf(&path, "%s/cost_model-predicted.tsv",
		cost_measurements(folder)->folder) < 0)
		die("out of host memory");
	Records *r = records_read(path);
	free(path);
	return r;
}

// match a row with a step
static bool is_row_of_step(const Records *r, int row, const MeasuredStep *s)
{
	return records_is(r, row, "size", s->size)
		&& records_is(r, row, "precision", s->precision)
		&& records_is(r, row, "strategy", cost_names[s->run.strategy])
		&& records_is(r, row, "wire", s->wire)
		&& records_number(r, row, "context") == s->context
		&& records_number(r, row, "batch") == s->batch
		&& records_number(r, row, "prefetch") == s->run.prefetch
		&& records_number(r, row, "ranks") == s->ranks
		&& records_number(r, row, "tensor") == s->run.tensor
		&& records_is(r, row, "divided", s->divided ? "yes" : "no")
		&& records_number(r, row, "bucket_mb") == s->run.bucket_mb;
}

static double find_predicted(const Records *r, const MeasuredStep *s)
{
	const char *date = r ? records_head(r, "date") : NULL;
	if (date && s->date && strncmp(date, s->date, DATE) < 0)
		for (int i = 0; i < records_count(r); i++)
			if (is_row_of_step(r, i, s))
				return records_number(r, i, "predicted_ms");
	return NAN;
}

void predictions_try(int folder)
{
	Records *r = open_predicted(folder);
	records_free(&r);
}

double prediction_before(int folder, const MeasuredStep *s)
{
	Records *r = open_predicted(folder);
	double ms = find_predicted(r, s);
	records_free(&r);
	return ms;
}

// collect the errors of earlier predictions
PredictionErrors prediction_errors(int folder)
{
	const Measurements *s = cost_measurements(folder);
	double *errors = need(malloc((s->nsteps + 1) * sizeof *errors));
	Records *r = open_predicted(folder);
	PredictionErrors said = { .predicted = r ? records_count(r) : 0 };
	for (int i = 0; i < s->nsteps; i++) {
		double ms = find_predicted(r, &s->steps[i]);
		if (ms > 0)
			errors[said.n++] = fabs(ms / s->steps[i].step_ms - 1);
	}
	if (said.n > 0) {
		Stats all = stats_of(errors, said.n);
		said.median = all.median;
		said.largest = all.max;
	}
	records_free(&r);
	free(errors);
	return said;
}

// predict a step that has not been measured
static bool same_step(const MeasuredStep *a, const MeasuredStep *b)
{
	return strcmp(a->size, b->size) == 0 && a->context == b->context
		&& strcmp(a->precision, b->precision) == 0 && a->batch == b->batch
		&& strcmp(a->wire, b->wire) == 0 && a->ranks == b->ranks
		&& a->divided == b->divided && a->run.strategy == b->run.strategy
		&& a->run.tensor == b->run.tensor
		&& a->run.prefetch == b->run.prefetch
		&& a->run.bucket_mb == b->run.bucket_mb;
}

/* whether no table has the step; adds the passes of one rank, if a row has
 * them */
static bool is_unmeasured(const Measurements *s, MeasuredStep *x)
{
	for (int i = 0; i < s->nsteps; i++) {
		const MeasuredStep *t = &s->steps[i];
		if (same_step(t, x))
			return false;
		if (x->run.fwd_ms > 0 || !(t->run.fwd_ms > 0) || t->divided
			|| strcmp(t->size, x->size) != 0
			|| strcmp(t->precision, x->precision) != 0
			|| t->context != x->context || t->batch != x->batch)
			continue;
		x->run.fwd_ms = t->run.fwd_ms;
		x->run.bwd_ms = t->run.bwd_ms;
		x->run.opt_ms = t->run.opt_ms;
	}
	return true;
}

// emit a prediction
/* the date of the newest table that the constants may come from */
static const char *newest_date(const Measurements *s)
{
	const char *date = "-";
	for (int i = 0; i < s->nsteps; i++)
		if (s->steps[i].date && strncmp(s->steps[i].date, date, DATE) > 0)
			date = s->steps[i].date;
	return date;
}

static void emit_prediction(Row *row, int folder, MeasuredStep x)
{
	const CostFit *f = cost_fitted(folder);
	if (!is_unmeasured(cost_measurements(folder), &x))
		return;
	const CostRun r = cost_fit_run(f, &x);
	if (cost_error(&r)
		|| (!(r.fwd_ms > 0) && strcmp(x.precision, f->precision) != 0))
		return;
	cost_set_step(row, &x);
	row_set(row, "divided", "%s", x.divided ? "yes" : "no");
	row_set(row, "bucket_mb", "%g", x.run.bucket_mb);
	row_set(row, "wire", "%s", x.wire);
	row_set(row, "aided", "%s", r.fwd_ms > 0 ? "yes" : "no");
	row_set(row, "seen_until", "%.*s", DATE,
		newest_date(cost_measurements(folder)));
	row_set(row, "predicted_ms", "%.4f", cost_step(&f->machine, &r).step_ms);
	row_set(row, "predicted_MiB", "%.1f", cost_memory(&r) / 0x1p20);
	row_emit(row);
}

// choose steps to predict
enum { CONTEXT = 512, BATCH = 4 };
typedef struct PredictedSetting {
	CostStrategy strategy;
	double bucket_mb;
	long prefetch;
} PredictedSetting;
static const PredictedSetting usual[] = { { COST_NAIVE, 0, 0 },
	{ COST_FLAT, 0, 0 },
	{ COST_OVERLAP, 0, 0 }, { COST_BUCKETED, 1, 0 }, { COST_BUCKETED, 10, 0 },
	{ COST_BUCKETED, 25, 0 }, { COST_BUCKETED, 100, 0 },
	{ COST_BUCKETED, 1000, 0 }, { COST_SHARDED, 25, 0 }, { COST_ZERO1, 0, 0 },
	{ COST_ZERO2, 0, 0 }, { COST_FSDP, 0, 0 }, { COST_FSDP, 0, 1 },
	{ COST_FSDP, 0, 2 } };
static const PredictedSetting more_buckets[] = { { COST_BUCKETED, 2, 0 },
	{ COST_BUCKETED, 5, 0 },
	{ COST_BUCKETED, 50, 0 }, { COST_BUCKETED, 250, 0 },
	{ COST_BUCKETED, 500, 0 }, { COST_FSDP, 0, 3 }, { COST_FSDP, 0, 4 } };
static const PredictedSetting tensor_buckets[] = { { COST_FLAT, 0, 0 },
	{ COST_BUCKETED, 25, 0 },
	{ COST_ZERO1, 0, 0 }, { COST_FSDP, 0, 1 } };
static const PredictedSetting copies = { COST_BUCKETED, 25, 0 },
	group = { COST_SINGLE, 0, 0 };

// describe a step that was not measured
/* bytes of an element in matmuls, and of a gradient that travels */
typedef struct StepWidths {
	int low, wire;
} StepWidths;
static const StepWidths widths[] = { { 2, 2 }, { 2, 4 }, { 4, 4 } };

static MeasuredStep step_of(const PredictedSetting *a, int size, StepWidths f,
	long ranks,
	long context, long batch)
{
	const NamedShape *named = &model_sizes[size];
	return (MeasuredStep){ .size = named->name,
		.precision = f.low == 2 ? "bf16" : "fp32",
		.wire = f.wire == 2 ? "bf16" : "fp32", .context = context,
		.batch = batch,
		.ranks = ranks, .run = { .shape = cost_shape(&named->shape),
			.tokens = (double)context * batch, .context = context,
			.data = ranks, .tensor = 1, .parts = 1, .stages = 1,
			.microbatches = 1, .interleave = 1, .strategy = a->strategy,
			.bucket_mb = a->bucket_mb, .prefetch = a->prefetch, .real = 4,
			.low = f.low, .gather = f.low, .wire = f.wire,
			.gradient = f.wire, .mixed = f.low == 2, .flash = true } };
}

// emit predictions of settings, batches and groups
static void emit_predictions(Row *row, int folder, int size,
	const PredictedSetting *list, int n)
{
	for (long ranks = 2; ranks <= (list == usual ? 8 : 2); ranks *= 2)
		for (int f = 0; f < 3; f++)
			for (int i = 0; i < n; i++)
				if (f != 1 || list[i].strategy <= COST_BUCKETED)
					emit_prediction(row, folder, step_of(&list[i], size,
						widths[f], ranks, CONTEXT, BATCH));
}

static void emit_batches(Row *row, int folder, int size)
{
	static const struct { long context, batch; } batches[] = { { 512, 2 },
		{ 512, 8 }, { 512, 16 }, { 256, 4 }, { 1024, 4 }, { 2048, 1 },
		{ 2048, 4 } };
	for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
		for (size_t i = 0; i < sizeof tensor_buckets
			/ sizeof *tensor_buckets; i++)
			emit_prediction(row, folder,
				step_of(&tensor_buckets[i], size, widths[0], 2,
				batches[b].context, batches[b].batch));
}

static void emit_grids(Row *row, int folder, int size, StepWidths f)
{
	static const struct { long tensor, data; } grids[] = { { 2, 1 }, { 1, 2 },
		{ 4, 1 }, { 2, 2 }, { 1, 4 } };
	for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
		long data = grids[i].data, tensor = grids[i].tensor;
		MeasuredStep x = step_of(data > 1 ? &copies : &group, size, f,
			data * tensor, CONTEXT, BATCH);
		x.divided = true;
		x.run.tensor = tensor;
		x.run.data = data;
		x.run.tokens /= data;
		x.run.norms = true;
		x.run.shape.heads = x.run.shape.kv_heads
			= tensor * ceil(x.run.shape.heads / tensor);
		emit_prediction(row, folder, x);
	}
}

// predict what no table has
void run_predicted(Row *row, const void *config)
{
	enum { SIZES_AHEAD = 5 };
	int folder = ((const MachineConfig *)config)->folder;
	if (!cost_measurements(folder)->gpu) {
		row_skip(row, "GPUs only");
		return;
	}
	for (int size = 0; size < SIZES_AHEAD; size++) {
		emit_predictions(row, folder, size, usual, sizeof usual / sizeof *usual);
		emit_predictions(row, folder, size, more_buckets,
			sizeof more_buckets / sizeof *more_buckets);
		emit_batches(row, folder, size);
		emit_grids(row, folder, size, widths[0]);
		emit_grids(row, folder, size, widths[2]);
	}
}
