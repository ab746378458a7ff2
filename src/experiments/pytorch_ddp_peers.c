/* pytorch_ddp_peers: a training step under PyTorch's data parallelism */
#include <string.h>

#include "base/error.h"
#include "bench/peer.h"
#include "bench/training.h"

#define COLUMNS "single_ms single_sd_ms step_ms step_sd_ms ratio peak_MiB"

static PeerFilter only;
static long gpus = 2, batch = 4, context = 512, warmup = 5, steps = 10,
	limit_s = 900;
static double bucket_mb = 25;

static const Option options[] = {
	PEER_OPTIONS(only, "pytorch-eager, pytorch-compiled, pytorch-compiled-whole, "
		"pytorch-compiled-blocks or pytorch-best-blocks"),
	{ "gpus", OPT_INT, &gpus, "2..64", "ranks, a GPU each" },
	{ "bucket-mb", OPT_REAL, &bucket_mb, "MB", "megabytes in a bucket" },
	{ "batch", OPT_INT, &batch, "1..1024", "sequences in a rank's batch" },
	CONTEXT_OPTION(&context), WARMUP_OPTION(&warmup), STEPS_OPTION(&steps),
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
			int p = forms[f].precision;
			if (!peer_wanted(&only, forms[f].impl, model_sizes[i].name,
				policies[p].name) || (!gpu && p != POLICY_FP32))
				continue;
			any = true;
			plan_add(plan, &(Config){ forms[f].impl, i, p, gpus, bucket_mb });
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
	.about = "PyTorch's data parallelism, and its step on one GPU",
	.options = options, .cpu_scale = SCALED,
	.sweeps = (const Sweep[]){
		{ "step", keys, COLUMNS, plan, run },
		{ 0 }
	},
};
