/* gradient_checkpointing: memory and time against how many blocks run again */
#include "base/error.h"
#include "bench/training.h"
#include "estimate/memory_estimate.h"

// read the options of checkpointing
static int size = SIZE_2_7B, precision = POLICY_BF16, fusion = FUSION_FUSED;
static long context = 2048, batch = 4, warmup = 2, steps = 5, checkpoint = -1;
static bool nested;
static const Option options[] = {
	SIZE_OPTION(&size), CONTEXT_OPTION(&context), BATCH_OPTION(&batch),
	PRECISION_OPTION(&precision), FUSION_OPTION(&fusion),
	{ "checkpoint", OPT_INT, &checkpoint, "-1..1024",
		"blocks run again at a time; 0: none; -1: a range of them" },
	{ "nested", OPT_FLAG, &nested, NULL, "from the inputs of halves of halves" },
	WARMUP_OPTION(&warmup), STEPS_OPTION(&steps),
	{ 0 }
};

// describe a row of checkpointing
typedef struct CheckpointingConfig {
	ModelConfig model;
	bool nested;
	long K;
} CheckpointingConfig;
static const Key keys[] = { MODEL_KEYS, KEY(CheckpointingConfig, nested),
	KEY(CheckpointingConfig, K),
	{ 0 } };

// plan group sizes, nested or not
/* on a CPU few rows of a short context, which take seconds */
static void plan(Plan *plan)
{
	static const int several[] = { 0, 1, 2, 3, 4, 6, 8, 12, 16, 32 };
	bool gpu = harness_on_gpu();
	int layers = gpu ? model_sizes[size].shape.layers
		: scaled_down(model_sizes[size].shape).layers;
	long T = gpu ? context : (context + 2 * SCALE - 1) / (2 * SCALE);
	if (checkpoint > layers)
		usage_error("--checkpoint %ld: %s has %d blocks here", checkpoint,
			model_sizes[size].name, layers);
	for (int deep = nested; deep < 2; deep++)
		for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
			long K = checkpoint < 0 ? several[i] : checkpoint;
			bool halves = K == 1 || K == 2 || K == 4;
			if (K > layers || (deep && checkpoint < 0 && !halves)
				|| (checkpoint >= 0 && (i > 0 || deep != nested)))
				continue;
			plan_add(plan, &(CheckpointingConfig){ { .size = size, T, precision,
				fusion },
				deep, K });
		}
}

// set the memory of a step, measured or derived
/* bytes; derived NULL: not set */
static void set_memory(Row *row, double peak, const MemoryEstimate *derived,
	double workspace)
{
	const double MiB = 1048576;
	row_set(row, "peak_MiB", "%.1f", peak / MiB);
	if (derived)
		row_set(row, "derived_MiB", "%.1f", derived->total / MiB);
	row_set(row, "workspace_MiB", "%.1f", workspace / MiB);
}

// time steps that run blocks again
static void run(Row *row, const void *config)
{
	const CheckpointingConfig *c = config;
	Training t = training_of(&c->model, batch, true);
	Device *d = t.m->device;
	model_recompute(t.m, (int)c->K, c->nested);
	StepStats s = timed_steps(t.m, &t.adamw, &t.batch, MODE_TRAIN, false, warmup,
		steps);
	row_set_steps(row, &s);
	/* of temporaries, a step leaves the library's workspace */
	double workspace = d->active[MEM_TEMPORARY];
	MemoryEstimate derived = memory_estimate(t.m, batch, t.batch.T, true);
	set_memory(row, d->total_peak - workspace, &derived, workspace);
	row_set(row, "loss", "%.6f", s.loss);
}

static void run_dry(Row *row, const void *config)
{
	const CheckpointingConfig *c = config;
	Training t = training_of(&c->model, batch, false);
	model_recompute(t.m, (int)c->K, c->nested);
	MemoryEstimate e = memory_estimate(t.m, batch, t.batch.T, true);
	set_memory(row, e.total, NULL, e.workspace);
}

const Experiment experiment = {
	.about = "memory and time of a step that runs blocks again",
	.options = options, .cpu_scale = "small (widths, depths, vocabulary divided "
		"by 8, contexts by 32)",
	.sweeps = SWEEPS(
		{ "blocks", keys, plan, run, .dry = run_dry }),
};
