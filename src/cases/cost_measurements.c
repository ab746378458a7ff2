#define _GNU_SOURCE
#include "cases/cost_measurements.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/options.h"
#include "base/table_reader.h"
#include "bench/training.h"
#include "cases/collective_case.h"

// open a table of a folder
/* NULL: there is no such table */
static Records *open_table(const char *folder, const char *name)
{
	char *path;
	if (asprintf(&path, "%s/%s.tsv", folder, name) < 0)
		die("out of host memory");
	Records *r = records_read(path);
	free(path);
	return r;
}

static Records *keep_table(Measurements *seen, const char *folder,
	const char *name)
{
	Records *r = open_table(folder, name);
	assert(seen->ntables < (int)(sizeof seen->tables / sizeof *seen->tables));
	seen->tables[seen->ntables++] = r;
	return r;
}

static const char *text_of(const Records *r, int row, const char *column)
{
	const char *text = records_text(r, row, column);
	return text ? text : "-";
}

// describe a step of a row
static Shape shape_of(const char *size, bool gpu, long context)
{
	int i = options_choice(SIZES, size);
	Shape s = i >= 0 ? model_sizes[i].shape : (Shape){ 0 };
	s = gpu ? s : scaled_down(s);
	s.context = context;
	return s;
}

// describe a step as a run of the cost model
static CostRun run_of(const Records *r, int row, bool gpu)
{
	bool mixed = !records_is(r, row, "precision", "fp32"),
		half = records_is(r, row, "wire", "bf16");
	const char *name = text_of(r, row, "strategy");
	double prefetch = records_number(r, row, "prefetch"),
		low = mixed ? 2 : 4, wire = half ? 2 : 4;
	// find the strategy of a row
	if (records_text(r, row, "tp"))
		name = records_number(r, row, "dp") > 1 ? "bucketed" : "single";
	else if (strcmp(name, "-") == 0)
		name = text_of(r, row, "kind");
	if (strcmp(name, "ddp") == 0)
		name = "bucketed";
	bool travels = strcmp(name, "single") != 0;
	long context = lrint(records_number(r, row, "context"));
	Shape shape = shape_of(text_of(r, row, "size"), gpu, context);
	return (CostRun){ .shape = cost_shape(&shape), .context = context,
		.tokens = context * records_number(r, row, "batch"),
		.data = lrint(records_number(r, row, "ranks")), .tensor = 1, .parts = 1,
		.stages = 1, .microbatches = 1, .interleave = 1,
		.strategy = options_choice(COST_STRATEGIES, name),
		.bucket_mb = records_number(r, row, "bucket_mb"),
		.prefetch = prefetch > 0 ? lrint(prefetch) : 0, .real = 4,
		.low = gpu ? low : 4, .gather = low, .wire = wire,
		.gradient = gpu && travels ? wire : 4, .mixed = mixed,
		.flash = true };
}

// find what one rank takes alone
static bool same_model(const MeasuredStep *a, const MeasuredStep *b)
{
	return strcmp(a->on, b->on) == 0 && strcmp(a->size, b->size) == 0
		&& a->context == b->context
		&& strcmp(a->precision, b->precision) == 0 && a->batch == b->batch;
}

static void find_alone(Measurements *seen)
{
	for (int i = 0; i < seen->nsteps; i++) {
		MeasuredStep *s = &seen->steps[i];
		for (int j = 0; j < seen->nsteps && !(s->run.fwd_ms > 0); j++) {
			const MeasuredStep *t = &seen->steps[j];
			if (!(t->run.fwd_ms > 0) || !same_model(s, t) || (s->divided
				? t->table != s->table || t->ranks > 1 : t->divided))
				continue;
			s->run.fwd_ms = t->run.fwd_ms;
			s->run.bwd_ms = t->run.bwd_ms;
			s->run.opt_ms = t->run.opt_ms;
		}
	}
}

// collect steps
static const char *machine_of(const char *folder)
{
	const char *slash = strrchr(folder, '/');
	return slash ? slash + 1 : folder;
}

static bool is_usable(const Records *r, int row)
{
	return records_is(r, row, ROW_STATUS, "ok")
		&& records_is(r, row, "fusion", "fused")
		&& (records_text(r, row, "sums") == NULL
			|| records_is(r, row, "sums", "comm"))
		&& options_choice(SIZES, text_of(r, row, "size")) >= 0;
}

// divide one batch between ranks
static void divide_batch(MeasuredStep *s, const Records *r, int row, bool gpu)
{
	long tp = lrint(records_number(r, row, "tp")),
		dp = lrint(records_number(r, row, "dp"));
	s->divided = true;
	s->ranks = tp * dp;
	s->run.data = dp;
	s->run.tensor = tp;
	s->run.tokens /= dp;
	s->run.bucket_mb = dp < 2 ? 0 : gpu ? 25 : 0.25;
	s->run.prefetch = 0;
	s->run.norms = records_is(r, row, "norms", "keep");
	if (tp == 1)                       /* of copies nothing was timed alone */
		s->alone_ms = NAN;
	CostShape *shape = &s->run.shape;
	shape->heads = shape->kv_heads = tp * ceil(shape->heads / tp);
	s->peak_MiB = records_number(r, row, "peak_MiB");
}

// read a step from a row
static MeasuredStep step_of(const Records *r, int row, const char *on,
	const char *table, bool gpu)
{
	double period = records_number(r, row, "period_ms"),
		step = records_number(r, row, "step_ms"),
		single = records_number(r, row, "single_ms");
	MeasuredStep s = { on, table, text_of(r, row, "size"),
		text_of(r, row, "precision"),
		text_of(r, row, "wire"), text_of(r, row, "via"),
		records_head(r, "date"),
		lrint(records_number(r, row, "context")),
		lrint(records_number(r, row, "batch")),
		lrint(records_number(r, row, "ranks")), run_of(r, row, gpu),
		period > 0 ? period : step, records_number(r, row, "bwd_ms"),
		records_number(r, row, "wait_ms"), records_number(r, row, "comm_ms"),
		records_number(r, row, "alone_ms"),
		records_number(r, row, "single_bwd_ms"),
		strcmp(table, "fsdp_accounting") == 0
			? records_number(r, row, "peak_MiB") : NAN, false };
	if (records_text(r, row, "tp"))
		divide_batch(&s, r, row, gpu);
	// take a step of one rank as its own reference
	if (s.run.strategy == COST_SINGLE && s.run.tensor == 1) {
		s.run.data = 1;
		single = s.step_ms;
		s.single_bwd_ms = s.bwd_ms;
	}
	// split the step of one rank into passes and update
	double update = records_number(r, row, "opt_ms");
	CostRun one = s.run, whole = s.run;
	one.opt_ms = whole.opt_ms = 1;
	one.strategy = COST_SINGLE;
	one.data = 1;
	one.gradient = one.real;
	update *= cost_update_ms(NULL, &one) / cost_update_ms(NULL, &whole);
	if (single > 0 && s.single_bwd_ms > 0 && update > 0) {
		s.run.opt_ms = update;
		s.run.bwd_ms = s.single_bwd_ms;
		s.run.fwd_ms = single - update - s.single_bwd_ms;
	}
	return s;
}

// add the steps of a table
/* adds steps of one rank and of more ranks than `beyond`; returns how many rows
 * are usable in all */
static int add_table(Measurements *seen, const char *folder, const char *name,
	long beyond)
{
	const Records *r = keep_table(seen, folder, name);
	int steps = 0;
	for (int row = 0; r && row < records_count(r); row++) {
		if (!is_usable(r, row))
			continue;
		MeasuredStep s = step_of(r, row, machine_of(folder), name, seen->gpu);
		steps++;
		if (s.ranks <= beyond && s.run.data * s.run.tensor > 1)
			continue;
		seen->steps = grow(seen->steps, seen->nsteps, sizeof *seen->steps);
		seen->steps[seen->nsteps++] = s;
	}
	return steps;
}

// collect collectives
static void add_collectives(Measurements *seen, const char *name)
{
	static const CostCollective costs[] = { [ALL_REDUCES] = COST_ALL_REDUCE,
		[REDUCE_SCATTERS] = COST_REDUCE_SCATTER,
		[ALL_GATHERS] = COST_ALL_GATHER, [BROADCASTS] = COST_BROADCAST };
	const Records *r = keep_table(seen, seen->folder, name);
	for (int row = 0; r && row < records_count(r); row++) {
		int what = options_choice(COLLECTIVES, text_of(r, row, "collective"));
		if (what < 0)            /* a table of all-reduces has no such column */
			what = ALL_REDUCES;
		if (!records_is(r, row, ROW_STATUS, "ok")
			|| !(records_number(r, row, "time_ms") > 0))
			continue;
		seen->collectives = grow(seen->collectives, seen->ncollectives,
			sizeof *seen->collectives);
		seen->collectives[seen->ncollectives++] = (MeasuredCollective){
			text_of(r, row, "transport"), text_of(r, row, "dtype"),
			text_of(r, row, "device"), collective_name(what), costs[what],
			lrint(records_number(r, row, "ranks")),
			records_number(r, row, "bytes"), records_number(r, row, "time_ms") };
	}
}

// read a machine's tables
/* measured bf16 peak of this folder's GPU, or of one with the same
 * multiprocessors */
static double peak_of(const Measurements *seen)
{
	Records *r = open_table(seen->folder, "peaks");
	if (r == NULL && seen->gpu)
		r = open_table("tables/h100", "peaks");
	double TFLOPs = NAN;
	for (int row = 0; r && row < records_count(r); row++)
		if (records_is(r, row, "quantity", "bf16"))
			TFLOPs = records_number(r, row, "value");
	records_free(&r);
	return TFLOPs;
}

// list the tables of steps, and add them all
static const char *const step_tables[] = { "naive_ddp_benchmarking",
	"minimal_ddp_flat_benchmarking",
	"ddp_overlap_individual_parameters_benchmarking",
	"ddp_bucketed_benchmarking", "ddp_bucketed_benchmarking-sizes",
	"optimizer_state_sharding_accounting-times", "fsdp_accounting",
	"tensor_parallel" };
enum { NSTEP_TABLES = sizeof step_tables / sizeof *step_tables };

static long most_ranks(const Measurements *seen)
{
	long most = 0;
	for (int i = 0; i < seen->nsteps; i++)
		if (seen->steps[i].ranks > most)
			most = seen->steps[i].ranks;
	return most;
}

static void add_steps(Measurements *seen, const char *folder, long beyond)
{
	int steps = 0;
	for (int i = 0; i < NSTEP_TABLES; i++)
		steps += add_table(seen, folder, step_tables[i], beyond);
	if (steps == 0)
		usage_error("%s: no table of training steps", folder);
}

// read the tables of all folders
Measurements measurements_read(const char *folders)
{
	char *list = need(strdup(folders)), *folder = strsep(&list, "+");
	Measurements seen = { .folder = folder, .machine = machine_of(folder) };
	for (int i = 0; i < NSTEP_TABLES; i++) {
		Records *r = open_table(folder, step_tables[i]);
		seen.gpu = seen.gpu || (r && records_head_is(r, "backend", "cuda"));
		records_free(&r);
	}
	add_steps(&seen, folder, 0);
	add_collectives(&seen, "distributed_communication_single_node");
	add_collectives(&seen, "distributed_communication_single_node-collectives");
	long beyond = most_ranks(&seen);
	while ((folder = strsep(&list, "+")))
		add_steps(&seen, folder, beyond);
	find_alone(&seen);
	seen.TFLOPs = peak_of(&seen);
	return seen;
}
