#include "estimate/cost_map.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// machines of data sheets
const CostSheet cost_sheets[] = {
#define SHEET_OF(id, ...) { __VA_ARGS__ },
	MAP_SHEETS_OF(SHEET_OF, SHEET_OF)
	{ "H100 500 W", 989, 2400, 96, 450, 50, 8 },
	{ "A100", 312, 2039, 80, 300, 25, 8 },
};
enum { NSHEETS = sizeof cost_sheets / sizeof *cost_sheets };

const CostSheet *cost_sheet(const char *name)
{
	for (int i = 0; i < NSHEETS; i++)
		if (strcmp(cost_sheets[i].name, name) == 0)
			return &cost_sheets[i];
	return NULL;
}

// scale a sheet to what is reached
enum { NEAR_STEP_NS = 3400, FAR_STEP_NS = 14000 };  /* NCCL: NVLink, network */

CostReached cost_reached(const CostMachine *m, const CostSheet *s)
{
	CostReached r = { m->TFLOPs / s->TFLOPs, m->GBps / s->GBps,
		m->near.GBps / s->near_GBps, *m };
	return r;
}

CostMachine cost_machine(const CostSheet *s, const CostReached *reached)
{
	CostMachine m = reached->constants;
	m.TFLOPs = s->TFLOPs * reached->TFLOPs;
	m.GBps = s->GBps * reached->GBps;
	m.memory_GB = s->memory_GB;
	m.near = (CostLink){ s->near_GBps * reached->link, NEAR_STEP_NS * 1e-3 };
	m.far = (CostLink){ s->far_GBps * reached->link, FAR_STEP_NS * 1e-3 };
	m.node = s->node;
	return m;
}

// models of the maps
CostModel cost_model(int which)
{
#define MODEL_OF(id, name, context, ...) { name, context, { __VA_ARGS__ } },
	static const CostModel others[] = { OTHER_MODELS_OF(MODEL_OF, MODEL_OF) };
	assert(which >= 0 && which < NMAP_MODELS);
	if (which >= NTRAINED)
		return others[which - NTRAINED];
	const NamedShape *s = &model_sizes[which];
	return (CostModel){ s->name, s->shape.context, cost_shape(&s->shape) };
}

// try all ways to divide a step
typedef struct StrategySearch {
	const CostMachine *m;
	const CostModel *model;
	long sequences;                  /* of a rank of data parallelism */
	CostChoice best;
} StrategySearch;

static bool fits(const StrategySearch *s, const CostRun *r)
{
	const double room = 0.9;         /* of memory, for tensors */
	return cost_memory(r) <= room * s->m->memory_GB * 1e9;
}

// keep a run that is faster
static void try_run(StrategySearch *s, CostRun r)
{
	const double gain = 0.98;        /* for which one divides in more ways */
	if (cost_error(&r) || !fits(s, &r))
		return;
	CostStep step = cost_step(s->m, &r);
	s->best.tried++;
	if (s->best.found && step.step_ms >= gain * s->best.step.step_ms)
		return;
	s->best.found = true;
	s->best.run = r;
	s->best.step = step;
}

// try a strategy with microbatches that fit
static void try_strategy(StrategySearch *s, CostRun r)
{
	long m = r.stages > 1 ? s->sequences : 1;
	for (;; m *= 2) {
		if (m > s->sequences || s->sequences % m != 0)
			return;
		r.microbatches = m;
		r.tokens = (double)s->sequences / m * s->model->context;
		if (fits(s, &r) || r.stages > 1)
			break;
	}
	try_run(s, r);
}

// try the strategies of a division
static void try_division(StrategySearch *s, long data, long tensor, long stages)
{
	static const CostStrategy strategies[] = { COST_BUCKETED, COST_ZERO1,
		COST_FSDP };
	CostRun r = { .shape = s->model->shape, .context = s->model->context,
		.data = data, .tensor = tensor, .parts = 1, .stages = stages,
		.interleave = 1, .bucket_mb = 100, .real = 4, .low = 2, .gradient = 2,
		.gather = 2, .wire = 2, .mixed = true, .flash = true,
		.fp8 = s->model->fp8, .code = 1 };
	for (int i = 0; i < 3; i++) {
		r.strategy = strategies[i];
		r.prefetch = r.strategy == COST_FSDP;
		if ((data == 1 && i > 0) || (stages > 1 && data > 1 && i != 1))
			continue;
		for (int again = 0; again < 2; again++)
			for (r.interleave = 1; r.interleave <= (stages > 1 ? 4 : 1);
				r.interleave *= 2) {
				r.recompute = again;
				try_strategy(s, r);
			}
	}
}

// try all divisions of the devices
CostChoice cost_choose(const CostMachine *m, const CostModel *model,
	long devices, long sequences, bool pipeline)
{
	enum { MOST_TENSOR = 8, MOST_STAGES = 64 };
	StrategySearch s = { .m = m, .model = model };
	for (long stages = 1; stages <= (pipeline ? MOST_STAGES : 1); stages *= 2)
		for (long tensor = 1; tensor <= MOST_TENSOR && tensor <= m->node;
			tensor *= 2) {
			long data = devices / (tensor * stages);
			if (data < 1 || data * tensor * stages != devices
				|| sequences % data != 0)
				continue;
			s.sequences = sequences / data;
			try_division(&s, data, tensor, stages);
		}
	return s.best;
}

// name a choice
const char *cost_choice_name(const CostRun *r, char text[64])
{
	int n = snprintf(text, 64, "%s", r->data == 1 ? ""
		: r->strategy == COST_FSDP ? "fsdp" : r->strategy == COST_ZERO1 ? "zero1"
		: "ddp");
	if (r->tensor > 1)
		n += snprintf(text + n, 64 - n, "%stp%ld", n ? " " : "", r->tensor);
	if (r->stages > 1)
		n += snprintf(text + n, 64 - n, "%spp%ld", n ? " " : "", r->stages);
	if (n == 0)
		snprintf(text, 64, "single");
	return text;
}
