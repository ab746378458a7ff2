/* cost_model: the constants of the cost model, its predictions beside what was
 * measured, and maps of what it says of other machines */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cases/cost_predictions.h"
#include "cases/cost_validation.h"
#include "cases/cost_search.h"

// options of the cost model
static const Option options[] = {
	TABLES_OPTION(&cost_options.folders, "FOLDERS",
		"of recorded tables, commas between, + before more of the same GPUs; "
		"maps take the first's constants"),
	{ "fit-size", OPT_CHOICE, &cost_options.size, SIZES,
		"fit to this model; else to medium, or large" },
	// list the options of another machine
	{ "hardware", OPT_CHOICE, &search_options.sheet, CHOICES(MAP_SHEETS_OF),
		"maps of this machine only" },
	TFLOPS_OPTION(&search_options.custom.TFLOPs,
		"of matmuls of another machine, by its data sheet"),
	{ "memory-GBps", OPT_REAL, &search_options.custom.GBps, "RATE", "its memory's" },
	{ "memory-GB", OPT_REAL, &search_options.custom.memory_GB, "GB", "its memory" },
	{ "near-GBps", OPT_REAL, &search_options.custom.near_GBps, "RATE",
		"what it sends inside a node" },
	{ "far-GBps", OPT_REAL, &search_options.custom.far_GBps, "RATE",
		"what it sends to other nodes" },
	{ "node", OPT_INT, &search_options.custom.node, "1..1048576",
		"devices of a node" },
	// list the options of another model
	{ "model", OPT_CHOICE, &search_options.model, MAP_MODELS,
		"maps of this model only" },
	D_MODEL_OPTION(&search_options.d_model, "1..1048576",
		"width of another model"),
	D_FF_OPTION(&search_options.d_ff, "1..4194304",
		"width of its feed-forward layers"),
	LAYERS_OPTION(&search_options.layers, "1..10000", "its blocks"),
	HEADS_OPTION(&search_options.heads, "1..4096", "heads of a block"),
	{ "kv-heads", OPT_INT, &search_options.kv_heads, "1..4096",
		"heads of keys and values" },
	VOCAB_OPTION(&search_options.vocab, "1..10000000", "its vocabulary"),
	CONTEXT_OPTION_IN(&search_options.context, "1..16777216",
		"tokens of a sequence of it"),
	IDEAL_DEVICES_OPTION(&search_options.devices, "1..1048576",
		"maps at this number only"),
	{ "tokens", OPT_INT, &search_options.tokens, "1..1099511627776",
		"maps at this batch only, of all devices" },
	{ "fp8", OPT_REAL, &search_options.fp8, "RATIO",
		"maps with the blocks' linear layers in FP8, so many times as fast as in "
		"bf16" },
	{ 0 }
};

// plan a row of tables for each machine
static void plan_machines(Plan *plan)
{
	for (int i = 0, n = count_folders(); i < n; i++)
		plan_add(plan, &(MachineConfig){ cost_measurements(i)->machine, i });
}

static void plan_predicted_machines(Plan *plan)
{
	plan_machines(plan);
	for (int i = 0, n = count_folders(); i < n; i++)
		predictions_try(i);
}

static void plan_collectives(Plan *plan)
{
	int planned = 0;
	for (int i = 0, n = count_folders(); i < n; i++)
		if (cost_measurements(i)->ncollectives > 0) {
			plan_add(plan, &(MachineConfig){ cost_measurements(i)->machine, i });
			planned++;
		}
	if (planned == 0)
		usage_error("--tables: no table of collectives");
}

// plan public runs
static void plan_published(Plan *plan)
{
	count_folders();                    /* which are read */
	for (int i = 0, n = published_count(); i < n; i++) {
		PublishedRun p = published_run(i);
		if (i == 0 || strcmp(published_run(i - 1).source, p.source) != 0)
			plan_add(plan, &(SourceConfig){ p.source, i });
	}
}

// plan maps
static void plan_search(Plan *plan)
{
	CostSheet sheets[MAP_SHEETS];
	CostModel models[NMAP_MODELS];
	int nsheets = search_sheets(sheets), nmodels = search_models(models);
	count_folders();
	if (!cost_measurements(0)->gpu)
		usage_error("--tables: maps take constants of GPUs, and %s has none",
			cost_measurements(0)->folder);
	for (int s = 0; s < nsheets; s++)
		for (int m = 0; m < nmodels; m++)
			plan_add(plan, &(SearchConfig){ sheets[s].name, models[m].name, s,
				m });
}

static void plan_hiding(Plan *plan)
{
	if (search_options.fp8 != 0)
		usage_error("--fp8 is for the sweeps regimes and scaling");
	plan_search(plan);
}

// name the keys of the cost model's tables
static const Key machine_keys[] = { KEY(MachineConfig, machine), { 0 } },
	source_keys[] = { KEY(SourceConfig, source), { 0 } },
	ways_keys[] = { KEY(SearchConfig, hardware), KEY(SearchConfig, model),
	{ 0 } };

const Experiment experiment = {
	.about = "what a step takes on many devices: constants, their proof, maps",
	.options = options, .cpu_scale = CLUSTER_SCALE, .cpu_only = true,
	.sweeps = SWEEPS(
		{ "constants", machine_keys, plan_predicted_machines, run_constants },
		{ "collectives", machine_keys, plan_collectives, run_collectives },
		{ "steps", machine_keys, plan_predicted_machines, run_steps },
		{ "predicted", machine_keys, plan_machines, run_predicted },
		{ "memory", machine_keys, plan_machines, run_memory },
		{ "public", source_keys, plan_published, run_published },
		{ "regimes", ways_keys, plan_search, run_regimes },
		{ "scaling", ways_keys, plan_search, run_scaling },
		{ "hiding", ways_keys, plan_hiding, run_hiding }),
};
