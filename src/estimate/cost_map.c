#include "estimate/cost_map.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// machines of data sheets
static const CostSheet sheets[] = {
	/*           TFLOP/s  GB/s   GB   near far  node */
	{ "H100",       989,  3350,  80,  450, 50,  8 },
	{ "H200",       989,  4800, 141,  450, 50,  8 },
	{ "B200",      2250,  8000, 180,  900, 50,  8 },
	{ "TPU v5p",    459,  2765,  95,  180, 6.25, 8960 },
	{ "H100 500 W", 989,  2400,  96,  450, 50,  8 },
	{ "A100",       312,  2039,  80,  300, 25,  8 },
};

int cost_sheets(const CostSheet **list)
{
	*list = sheets;
	return sizeof sheets / sizeof *sheets;
}

const CostSheet *cost_sheet(const char *name)
{
	for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++)
		if (strcmp(sheets[i].name, name) == 0)
			return &sheets[i];
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
static const CostModel models[] = {
	{ "small",  { 10000,   768,  3072, 12, 12,  64, 12, 3 },  512 },
	{ "medium", { 10000,  1024,  4096, 24, 16,  64, 16, 3 },  512 },
	{ "large",  { 10000,  1280,  5120, 36, 20,  64, 20, 3 },  512 },
	{ "xl",     { 10000,  1600,  6400, 48, 25,  64, 25, 3 },  512 },
	{ "2.7B",   { 10000,  2560, 10240, 32, 32,  80, 32, 3 },  512 },
	{ "8B",     { 128256,  4096, 14336,  32,  32, 128, 8, 3 }, 8192 },
	{ "70B",    { 128256,  8192, 28672,  80,  64, 128, 8, 3 }, 8192 },
	{ "405B",   { 128256, 16384, 53248, 126, 128, 128, 8, 3 }, 8192 },
	{ "XXL",    {      0, 16384, 53248, 126,   0,   0, 0, 2 }, 8192 },
};

int cost_models(const CostModel **list)
{
	*list = models;
	return sizeof models / sizeof *models;
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
		.gather = 2, .wire = 2, .mixed = true, .flash = true };
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
