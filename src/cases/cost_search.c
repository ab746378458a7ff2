#include "cases/cost_search.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cases/cost_validation.h"

// settle machines and models of maps
SearchOptions search_options = { .sheet = -1, .model = -1 };

int search_sheets(CostSheet sheets[MAP_SHEETS])
{
	const CostSheet *c = &search_options.custom;
	const double rates[] = { c->TFLOPs, c->GBps, c->memory_GB, c->near_GBps,
		c->far_GBps };
	int given = 0;
	for (int i = 0; i < 5; i++) {
		given += rates[i] != 0;
		if (rates[i] != 0 && !(rates[i] >= 1e-6 && rates[i] <= 1e9))
			usage_error("the rates and the memory of a machine: expected 1e-6 "
				"to 1e9, not %g", rates[i]);
	}
	if ((given > 0 || c->node > 0) && (given < 5 || c->node == 0))
		usage_error("a machine needs --TFLOPs, --memory-GBps, --memory-GB, "
			"--near-GBps, --far-GBps and --node");
	if (given > 0) {
		sheets[0] = *c;
		sheets[0].name = "custom";
		return 1;
	}
	if (search_options.sheet >= 0) {
		sheets[0] = cost_sheets[search_options.sheet];
		return 1;
	}
	memcpy(sheets, cost_sheets, MAP_SHEETS * sizeof *sheets);
	return MAP_SHEETS;
}

// put a custom model together
static CostModel custom_model(void)
{
	const SearchOptions *g = &search_options;
	long kv = g->kv_heads ? g->kv_heads : g->heads;
	if (g->d_model == 0 || g->d_ff == 0 || g->layers == 0 || g->heads == 0)
		usage_error("a model needs --d-model, --d-ff, --layers and --heads");
	if (g->d_model % g->heads != 0 || g->heads % kv != 0)
		usage_error("--heads %ld: expected a divisor of %ld and a multiple of "
			"%ld", g->heads, g->d_model, kv);
	return (CostModel){ "custom", g->context ? g->context : 512,
		{ g->vocab ? g->vocab : 10000, g->d_model, g->d_ff, g->layers,
		g->heads, g->d_model / g->heads, kv, 3 } };
}

// list the models of maps
int search_models(CostModel models[NMAP_MODELS])
{
	const SearchOptions *g = &search_options;
	bool custom = g->d_model || g->d_ff || g->layers || g->heads || g->kv_heads
		|| g->vocab;
	int n = custom || g->model >= 0 ? 1 : NMAP_MODELS;
	if (g->fp8 != 0 && !(g->fp8 >= 1 && g->fp8 <= 8))
		usage_error("--fp8 %g: expected 1 to 8", g->fp8);
	for (int i = 0; i < n; i++) {
		models[i] = custom ? custom_model()
			: cost_model(g->model >= 0 ? g->model : i);
		if (g->context)
			models[i].context = g->context;
		models[i].fp8 = g->fp8;
	}
	return n;
}

// find the best way of a row
typedef struct MapPoint {
	CostSheet sheet;
	CostModel model;
	CostMachine machine;
} MapPoint;

static MapPoint map_point_of(const SearchConfig *c)
{
	CostSheet sheets[MAP_SHEETS];
	CostModel models[NMAP_MODELS];
	count_folders();
	search_sheets(sheets);
	search_models(models);
	const CostReached reached = cost_reached(&cost_fitted(0)->machine,
		cost_sheet("H200"));
	return (MapPoint){ sheets[c->sheet], models[c->at],
		cost_machine(&sheets[c->sheet], &reached) };
}

// name the strategy of a run
static const char *strategy_name(const CostRun *r)
{
	return r->data == 1 ? "single" : r->strategy == COST_BUCKETED ? "ddp"
		: cost_names[r->strategy];
}

// set the cells of a choice
static void set_choice(Row *row, const MapPoint *p, const CostChoice *c,
	double tokens, long devices)
{
	const CostRun *r = &c->run;
	char text[64];
	bool any = c->found;
	double rate = tokens / devices / c->step.step_ms * 1e3,
		flops = 3 * cost_forward_flops(&p->model.shape, p->model.context);
	row_set(row, "way", "%s", any ? cost_choice_name(r, text) : "none");
	row_set(row, "strategy", "%s", any ? strategy_name(r) : "-");
	row_set(row, "tensor", any ? "%ld" : "-", r->tensor);
	row_set(row, "stages", any ? "%ld" : "-", r->stages);
	row_set(row, "interleave", any ? "%ld" : "-", r->interleave);
	row_set(row, "microbatches", any ? "%ld" : "-", r->microbatches);
	row_set(row, "recompute", !any ? "-" : r->recompute ? "yes" : "no");
	row_set(row, "step_ms", any ? "%.5g" : "-", c->step.step_ms);
	row_set(row, "tokens_per_s", any ? "%.5g" : "-", rate);
	row_set(row, "mfu", any ? "%.4f" : "-",
		rate * flops * 1e-12 / p->sheet.TFLOPs);
	row_set(row, "hidden", any ? "%.4f" : "-", c->step.comm_ms > 0 ? fmax(0, 1
		- (c->step.step_ms - c->step.compute_ms - c->step.bubble_ms)
		/ c->step.comm_ms) : 1);
	row_set(row, "bubble", any ? "%.4f" : "-",
		c->step.bubble_ms / c->step.step_ms);
	row_set(row, "GB", any ? "%.4g" : "-", c->step.nbytes * 1e-9);
}

// set the cells of a choice without a pipeline
/* sets the cells of the best choice without a pipeline */
static void set_plain_choice(Row *row, const CostChoice *c)
{
	char text[64];
	bool any = c->found;
	row_set(row, "plain_way", "%s", any ? cost_choice_name(&c->run, text)
		: "none");
	row_set(row, "plain_strategy", "%s", any ? strategy_name(&c->run) : "-");
	row_set(row, "plain_tensor", any ? "%ld" : "-", c->run.tensor);
	row_set(row, "plain_ms", any ? "%.5g" : "-", c->step.step_ms);
}

// set the best choice of a row
/* sets the cells of a row and returns the tokens/ms of a device; 0: no strategy
 * fits or divides */
static double set_best_choice(Row *row, const MapPoint *p, long devices,
	double tokens)
{
	double sequences = tokens / p->model.context;
	CostChoice c = { .found = false }, plain = c;
	row_set(row, "devices", "%ld", devices);
	row_set(row, "tokens", "%.0f", tokens);
	if (sequences >= 1 && sequences == floor(sequences)) {
		c = cost_choose(&p->machine, &p->model, devices, (long)sequences, true);
		plain = cost_choose(&p->machine, &p->model, devices, (long)sequences,
			false);
	}
	set_choice(row, p, &c, tokens, devices);
	set_plain_choice(row, &plain);
	return c.found ? tokens / devices / c.step.step_ms : 0;
}

// map regimes
void run_regimes(Row *row, const void *config)
{
	const MapPoint p = map_point_of(config);
	const SearchOptions *g = &search_options;
	for (long devices = 1; devices <= 1 << 16; devices *= 4)
		for (long tokens = 1 << 18; tokens <= 1 << 26; tokens *= 4) {
			if ((g->devices && devices > 1) || (g->tokens && tokens > 1 << 18))
				continue;
			set_best_choice(row, &p, g->devices ? g->devices : devices,
				g->tokens ? g->tokens : tokens);
			row_emit(row);
		}
}

// map scaling
static void emit_scaling(Row *row, const MapPoint *p, bool weak)
{
	const SearchOptions *g = &search_options;
	double first = 0;
	for (long devices = 1; devices <= 1 << 17; devices *= 2) {
		if (g->devices && devices > 1)
			return;
		long n = g->devices ? g->devices : devices;
		double tokens = g->tokens ? g->tokens : 1 << 22;
		tokens = weak ? 8192.0 * n : tokens;
		row_set(row, "mode", "%s", weak ? "weak" : "strong");
		double rate = set_best_choice(row, p, n, tokens);
		first = first > 0 ? first : rate;
		row_set(row, "efficiency", rate > 0 ? "%.4f" : "-", rate / first);
		row_emit(row);
	}
}

void run_scaling(Row *row, const void *config)
{
	const MapPoint p = map_point_of(config);
	emit_scaling(row, &p, false);
	emit_scaling(row, &p, true);
}

// map where communication hides
static bool is_hidden(const CostMachine *m, CostRun r, double tokens)
{
	CostMachine free_links = *m;
	const CostLink no_time = { INFINITY, 0 };
	r.tokens = tokens;
	free_links.near = free_links.far = no_time;
	free_links.call_us = free_links.sum_ms_per_GB = free_links.pieces_us = 0;
	free_links.stretch = (QueueStretch){ 1, 1 };
	return cost_step(m, &r).step_ms
		<= 1.05 * cost_step(&free_links, &r).step_ms;
}

// estimate by bytes and FLOPs alone
/* tokens of a device at which computing takes as long as its weights travel */
static double hiding_formula(const MapPoint *p, const CostRun *r)
{
	CostGroup all = { r->data, p->machine.node };
	CostMachine m = p->machine;
	m.call_us = m.near.step_us = m.far.step_us = m.sum_ms_per_GB = 0;
	m.pieces_us = 0;
	return m.TFLOPs * 1e9 * cost_collective(&m, COST_ALL_GATHER, all, 1e9)
		* 1e-9 * r->gather / 2;
}

// find the least batch that hides communication
static void set_least_tokens(Row *row, const char *column, const CostMachine *m,
	const CostRun *r)
{
	const double most = 0x1p24;
	double low = 1, high = most;
	for (int k = 0; k < 40; k++)
		*(is_hidden(m, *r, sqrt(low * high)) ? &high : &low) = sqrt(low * high);
	high = is_hidden(m, *r, 1) ? 1 : high;
	row_set(row, column, high < most ? "%.0f" : "none", ceil(high));
}

// find it for each strategy and number of devices
void run_hiding(Row *row, const void *config)
{
	static const CostStrategy strategies[] = { COST_BUCKETED, COST_ZERO1,
		COST_FSDP };
	static const long devices[] = { 2, 8, 64, 1024 };
	const MapPoint p = map_point_of(config);
	CostMachine apart = p.machine;
	apart.stretch = (QueueStretch){ 1, 1 };
	for (int i = 0; i < 3 * 4; i++) {
		CostRun r = { .shape = p.model.shape, .context = p.model.context,
			.data = search_options.devices ? search_options.devices
			: devices[i % 4],
			.tensor = 1, .parts = 1, .stages = 1, .microbatches = 1,
			.interleave = 1, .strategy = strategies[i / 4], .bucket_mb = 100,
			.prefetch = 1, .real = 4, .low = 2, .gradient = 2, .gather = 2,
			.wire = 2, .mixed = true, .flash = true };
		if (search_options.devices && i % 4 > 0)
			continue;
		row_set(row, "strategy", "%s", i / 4 == 0 ? "ddp"
			: cost_names[r.strategy]);
		row_set(row, "devices", "%ld", r.data);
		set_least_tokens(row, "tokens", &p.machine, &r);
		set_least_tokens(row, "unstretched_tokens", &apart, &r);
		row_set(row, "formula_tokens", "%.0f", ceil(hiding_formula(&p, &r)));
		row_emit(row);
	}
}
