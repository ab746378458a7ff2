/* pytorch_ddp_peers: a training step under PyTorch's data parallelism and ours */
#include <string.h>

#include "base/error.h"
#include "bench/peer.h"
#include "cases/sharding_case.h"

static PeerFilter only;
static long gpus = 2, batch = 4, context = 512, warmup = 5, steps = 10,
	limit_s = 900;
static double bucket_mb = 25;

// list the options of pytorch_ddp_peers
static const Option options[] = {
	PEER_OPTIONS(only, "ours, ours-bf16-wire, pytorch-eager, pytorch-compiled, "
		"pytorch-compiled-whole, pytorch-compiled-blocks, "
		"pytorch-best-blocks; of the sweep `sharded` also ours-zero1, "
		"ours-fsdp, pytorch-eager-zero1, pytorch-eager-fsdp2, "
		"pytorch-eager-libsystems-ddp or pytorch-eager-libsystems-fsdp"),
	{ "gpus", OPT_INT, &gpus, "2..64", "ranks, a GPU each" },
	BUCKET_OPTION(&bucket_mb, "megabytes in a bucket of PyTorch"),
	BATCH_OPTION_IN(&batch, "1..1024", "sequences in a rank's batch"),
	CONTEXT_OPTION(&context), WARMUP_OPTION(&warmup), STEPS_OPTION(&steps),
	LIMIT_OPTION(&limit_s, "1..3600",
		"seconds that one row of PyTorch may take"),
	{ 0 }
};
enum { GROUP_LIMIT_S = 3660 };           /* more than any --limit */

// describe a row of pytorch_ddp_peers
typedef struct DdpPeerConfig {
	const char *impl;
	int size, precision;
	long ranks;
	double bucket_mb;
} DdpPeerConfig;
static const Key keys[] = { KEY(DdpPeerConfig, impl),
	KEY(DdpPeerConfig, size, SIZES),
	KEY(DdpPeerConfig, precision, PRECISIONS), KEY(DdpPeerConfig, ranks),
	KEY(DdpPeerConfig, bucket_mb, "%g"), { 0 } };

// plan rows of data parallelism
static bool is_ours(const DdpPeerConfig *c)
{
	return strncmp(c->impl, "ours", strlen("ours")) == 0;
}

static int ranks_of(const void *config)
{
	const DdpPeerConfig *c = config;
	return is_ours(c) ? (int)c->ranks : 1;
}

// plan the forms of a step by size and precision
typedef struct PeerForm { int precision; const char *impl; } PeerForm;

/* returns how many rows */
static int plan_form(Plan *plan, PeerForm f, int first, int last)
{
	enum { OUR_MB = 100 };
	int n = 0;
	bool gpu = harness_on_gpu(), ours = f.impl[0] == 'o';
	for (int size = first; size <= last; size++) {
		if (!peer_wanted(&only, f.impl, model_sizes[size].name,
			policies[f.precision].name)
			|| (!gpu && (ours || f.precision != POLICY_FP32)))
			continue;
		plan_add(plan, &(DdpPeerConfig){ f.impl, size, f.precision, gpus,
			ours ? OUR_MB : bucket_mb });
		n++;
	}
	return n;
}

static void plan_forms(Plan *plan, const PeerForm *forms, int first, int last)
{
	int n = 0;
	for (const PeerForm *f = forms; f->impl; f++)
		n += plan_form(plan, *f, first, last);
	if (n == 0)
		usage_error("no row has this implementation, size and precision");
}

// plan the tables of steps and of classes
static void plan(Plan *plan)
{
	plan_forms(plan, (const PeerForm[]){
		{ POLICY_BF16, "ours" }, { POLICY_BF16, "ours-bf16-wire" },
		{ POLICY_FP32, "ours" },
		{ POLICY_BF16, "pytorch-eager" }, { POLICY_FP32, "pytorch-eager" },
		{ POLICY_BF16, "pytorch-best-blocks" },
		{ POLICY_BF16, "pytorch-compiled-blocks" },
		{ POLICY_BF16, "pytorch-compiled-whole" },
		{ POLICY_BF16, "pytorch-compiled" }, { 0 } }, 0, NTRAINED - 1);
}

static void plan_one_size(Plan *plan, const PeerForm *forms)
{
	plan_forms(plan, forms, only.size ? 0 : SIZE_XL,
		only.size ? NTRAINED - 1 : SIZE_XL);
}

static void plan_classes(Plan *plan)
{
	plan_one_size(plan, (const PeerForm[]){
		{ POLICY_BF16, "pytorch-compiled" }, { POLICY_BF16, "pytorch-eager" },
		{ POLICY_FP32, "pytorch-eager" }, { 0 } });
}

static void plan_sharded(Plan *plan)
{
	int p = harness_on_gpu() ? POLICY_BF16 : POLICY_FP32;
	plan_one_size(plan, (const PeerForm[]){
		{ p, "ours" }, { p, "ours-zero1" }, { p, "ours-fsdp" },
		{ p, "pytorch-eager" }, { p, "pytorch-eager-libsystems-ddp" },
		{ p, "pytorch-eager-zero1" }, { p, "pytorch-eager-fsdp2" },
		{ p, "pytorch-eager-libsystems-fsdp" }, { 0 } });
}

// have PyTorch train on several GPUs
static const char *container_of(const char *impl)
{
	static const char *const containers[] = { "libsystems-ddp",
		"libsystems-fsdp", "zero1", "fsdp2", NULL };
	const char *const *c = containers;
	while (*c && strstr(impl, *c) == NULL)
		c++;
	return *c ? *c : "ddp";
}

static void ask_pytorch(Row *row, const DdpPeerConfig *c, const char *how)
{
	const char *form = c->impl + strlen("pytorch-"),
		*parts = strstr(form, "-blocks") ? " --blocks"
		: strstr(form, "-whole") ? " --whole" : "";
	peer_measure(row, limit_s, "pytorch_ddp.py", "--impl %.*s%s%s "
		"--container %s --size %s --precision %s --ranks %ld "
		"--bucket_mb %g --context %ld "
		"--batch %ld --warmup %ld --steps %ld --seed %ld",
		(int)strcspn(form, "-"), form, parts, how, container_of(form),
		model_sizes[c->size].name,
		policies[c->precision].name, c->ranks, c->bucket_mb, context, batch,
		warmup, steps, harness_seed);
}

// train on several GPUs ourselves
static ShardingConfig our_config(const DdpPeerConfig *c)
{
	Strategy s = strstr(c->impl, "zero1") ? ZERO1
		: strstr(c->impl, "fsdp") ? FSDP : DDP;
	return (ShardingConfig){ { { c->size, context, c->precision, FUSION_FUSED },
		.batch = batch, .kind = DDP_BUCKETED, .bucket_mb = c->bucket_mb,
		.wire = s != DDP || strstr(c->impl, "bf16-wire") ? BF16 : FP32,
		.sums = SUMS_BY_OPTIMIZER, .ranks = c->ranks, .warmup = warmup,
		.steps = steps }, .strategy = s, .prefetch = s == FSDP };
}

static void train_ours(Row *row, const DdpPeerConfig *c)
{
	ShardingConfig config = our_config(c);
	ShardingCase *both = sharding_case(row, &config);
	DdpCase *run = both->run;
	ddp_case_begin(run, false, 0, 0);
	DdpTimes alone = ddp_case_steps(run, 0, warmup, steps);
	ddp_case_end(run);
	sharding_case_begin(both);
	DdpTimes all = ddp_case_steps(run, 0, warmup, steps);
	if (config.strategy == DDP)
		ddp_case_check(run);
	row_set_time(row, "single", alone.step);
	row_set_time(row, "step", all.step);
	row_set(row, "ratio", "%.6f", all.step.median / alone.step.median);
	row_set(row, "peak_MiB", "%.1f", run->device->total_peak / 1048576.0);
	sharding_case_close(&both);
}

static void run(Row *row, const void *config)
{
	const DdpPeerConfig *c = config;
	if (is_ours(c))
		train_ours(row, c);
	else
		ask_pytorch(row, c, "");
}

static void run_classes(Row *row, const void *config)
{
	ask_pytorch(row, config, " --classes");
}

const Experiment experiment = {
	.about = "PyTorch's data parallelism and ours, and their steps on one GPU",
	.options = options, .cpu_scale = SCALED, .sweeps = SWEEPS(
		{ "step", keys, plan, run, .ranks = ranks_of,
			.limit_s = GROUP_LIMIT_S },
		{ "classes", keys, plan_classes, run_classes },
		{ "sharded", keys, plan_sharded, run, .ranks = ranks_of,
			.limit_s = GROUP_LIMIT_S }),
};
