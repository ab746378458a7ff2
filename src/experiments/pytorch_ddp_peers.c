/* pytorch_ddp_peers: a training step under PyTorch's data parallelism */
#include <string.h>

#include "base/error.h"
#include "bench/peer.h"
#include "bench/training.h"

#define COLUMNS "single_ms single_sd_ms step_ms step_sd_ms ratio peak_MiB"

static const char *only_impl, *only_size, *only_precision;
static long gpus = 2, batch = 4, context = 512, warmup = 5, steps = 10,
	limit_s = 900;
static double bucket_mb = 25;

static const Option options[] = {
	{ "impl", OPT_TEXT, &only_impl, "NAME", "one implementation: pytorch-eager, "
		"pytorch-compiled, pytorch-compiled-whole, pytorch-compiled-blocks or "
		"pytorch-best-blocks" },
	{ "size", OPT_TEXT, &only_size, "NAME", "one size" },
	{ "precision", OPT_TEXT, &only_precision, "NAME", "fp32 or bf16" },
	{ "gpus", OPT_INT, &gpus, "2..64", "ranks, a GPU each" },
	{ "bucket-mb", OPT_REAL, &bucket_mb, "MB", "megabytes in a bucket" },
	{ "batch", OPT_INT, &batch, "1..1024", "sequences in a rank's batch" },
	CONTEXT_OPTION(&context),
	{ "warmup", OPT_INT, &warmup, "1..1000", "steps before the measured ones" },
	{ "steps", OPT_INT, &steps, "1..1000", "measured steps" },
	{ "limit", OPT_INT, &limit_s, "1..86400", "seconds that one row may take" },
	{ 0 }
};

typedef struct Config {
	const char *impl;
	int size, precision;
	long ranks;
	double bucket_mb;
} Config;
static const Key keys[] = { KEY(Config, impl), KEY(Config, size, SIZES),
	KEY(Config, precision, PRECISIONS), KEY(Config, ranks),
	KEY(Config, bucket_mb, "%g"), { 0 } };
static bool wanted(const char *only, const char *name)
{
	return only == NULL || strcmp(only, name) == 0;
}

static void plan(Plan *plan)
{
	static const struct { int precision; const char *impl; } forms[] = {
		{ POLICY_BF16, "pytorch-eager" }, { POLICY_FP32, "pytorch-eager" },
		{ POLICY_BF16, "pytorch-best-blocks" },
		{ POLICY_BF16, "pytorch-compiled-blocks" },
		{ POLICY_BF16, "pytorch-compiled" },
		{ POLICY_BF16, "pytorch-compiled-whole" } };
	bool gpu = harness_on_gpu(), any = false;
	for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
		for (int i = 0; i < NTRAINED; i++) {
			if (!wanted(only_impl, forms[f].impl)
				|| !wanted(only_size, model_sizes[i].name)
				|| !wanted(only_precision, policies[forms[f].precision].name)
				|| (!gpu && forms[f].precision != POLICY_FP32))
				continue;
			any = true;
			plan_add(plan, &(Config){ forms[f].impl, i, forms[f].precision, gpus,
				bucket_mb });
		}
	if (!any)
		usage_error("no row has this implementation, size and precision");
}
static void run(Row *row, const void *config)
{
	const Config *c = config;
	const char *form = c->impl + strlen("pytorch-");
	const char *how = strstr(form, "-blocks") ? " --blocks"
		: strstr(form, "-whole") ? " --whole" : "";
	peer_measure(row, COLUMNS, limit_s, "pytorch_ddp.py", "--impl %.*s%s "
		"--size %s --precision %s --ranks %ld --bucket_mb %g --context %ld "
		"--batch %ld --warmup %ld --steps %ld --seed %ld",
		(int)strcspn(form, "-"), form, how, model_sizes[c->size].name,
		policies[c->precision].name, c->ranks, c->bucket_mb, context, batch,
		warmup, steps, harness_seed);
}
const Experiment experiment = {
	.name = "pytorch_ddp_peers",
	.about = "PyTorch's data parallelism, and its step on one GPU",
	.options = options, .cpu_scale = SCALED,
	.sweeps = (const Sweep[]){
		{ "step", keys, COLUMNS, plan, run },
		{ 0 }
	},
};
