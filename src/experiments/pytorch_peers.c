/* pytorch_peers: the same training step by our engine and by PyTorch */
#include <string.h>

#include "base/error.h"
#include "bench/peer.h"
#include "bench/training.h"

static PeerFilter only;
static long batch = 4, context = 512, warmup = 5, steps = 10, limit_s = 420;

// list the options of pytorch_peers
static const Option options[] = {
	PEER_OPTIONS(only, "ours, ours-eager, pytorch-eager, pytorch-compiled or "
		"pytorch-best; the last two also with -blocks at the end, the last also "
		"with -graphs"),
	BATCH_OPTION_IN(&batch, "1..1024", "sequences in a batch"),
	CONTEXT_OPTION_IN(&context, "1..65536",
		"tokens in a sequence (on a CPU, divided by 16)"),
	WARMUP_OPTION_IN(&warmup, "2..1000", "steps before the measured ones"),
	STEPS_OPTION(&steps),
	LIMIT_OPTION(&limit_s, "1..86400",
		"seconds that one row of PyTorch may take"),
	{ 0 }
};

// list who is compared
typedef struct PeerConfig {
	const char *impl;
	int size;
	long context;
	int precision;
} PeerConfig;
static const Key keys[] = { KEY(PeerConfig, impl), KEY(PeerConfig, size, SIZES),
	KEY(PeerConfig, context), KEY(PeerConfig, precision, PRECISIONS), { 0 } };

// plan rows of both implementations
static void plan(Plan *plan)
{
	enum { SMALL = 2, ALL = NTRAINED };   /* sizes that are compiled as a whole */
	enum { F32 = POLICY_FP32, B16 = POLICY_BF16 };
	static const struct {
		int precision;
		const char *impl;
		int sizes;
	} forms[] = {
		{ B16, "ours", ALL }, { B16, "ours-eager", ALL },
		{ B16, "pytorch-eager", ALL }, { F32, "ours", ALL },
		{ F32, "ours-eager", ALL }, { F32, "pytorch-eager", ALL },
		{ B16, "pytorch-best-blocks", ALL },
		{ B16, "pytorch-compiled-blocks", ALL },
		{ B16, "pytorch-best", SMALL }, { B16, "pytorch-compiled", SMALL },
		{ B16, "pytorch-best-graphs", SMALL },
	};
	bool gpu = harness_on_gpu(), any = false;
	for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
		for (int i = 0; i < forms[f].sizes; i++) {
			int p = forms[f].precision;
			if (!peer_wanted(&only, forms[f].impl, model_sizes[i].name,
				policies[p].name) || (!gpu && p != POLICY_FP32))
				continue;
			any = true;
			plan_add(plan, &(PeerConfig){ forms[f].impl, i,
				scaled_context(context), p });
		}
	if (!any)
		usage_error("no row has this implementation, size and precision");
}

// time our step
static void time_ours(Row *row, const PeerConfig *c)
{
	bool fused = strcmp(c->impl, "ours") == 0;
	Shape shape = studied_shape(c->size, c->context);
	Device *device = harness_device();
	Model *m = model_new(device, &shape, &policies[c->precision], harness_seed);
	if (fused)
		model_fuse(m);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(batch, shape.context, shape.vocab, harness_seed);
	StepStats s = timed_steps(m, &adamw, &b, MODE_FORWARD, fused, warmup, steps);
	row_set(row, "fwd_only_ms", "%.4f", s.fwd.median);
	device_reset_peak(device);
	s = timed_steps(m, &adamw, &b, MODE_TRAIN, fused, warmup, steps);
	row_set(row, "fwd_ms", "%.4f", s.fwd.median);
	row_set(row, "bwd_ms", "%.4f", s.bwd.median);
	row_set(row, "opt_ms", "%.4f", s.opt.median);
	row_set_time(row, "step", s.step);
	row_set(row, "peak_MiB", "%.1f", device->total_peak / 1048576.0);
	row_set(row, "loss", "%.6f", s.loss);
}

// ask PyTorch for its time
static void time_theirs(Row *row, const PeerConfig *c, const char *form)
{
	const char *how = strstr(form, "-blocks") ? " --blocks"
		: strstr(form, "-graphs") ? " --graphs" : "";
	peer_measure(row, limit_s, "pytorch_peer.py", "time --forward --impl %.*s%s "
		"--size %s --context %ld --batch %ld --precision %s --warmup %ld "
		"--steps %ld --seed %ld", (int)strcspn(form, "-"), form, how,
		model_sizes[c->size].name, c->context, batch,
		policies[c->precision].name, warmup, steps, harness_seed);
}

// time a row by its implementation
static void run(Row *row, const void *config)
{
	const PeerConfig *c = config;
	if (strncmp(c->impl, "ours", 4) == 0)
		time_ours(row, c);
	else
		time_theirs(row, c, c->impl + strlen("pytorch-"));
}

const Experiment experiment = {
	.about = "one training step, ours and PyTorch's, side by side",
	.options = options, .cpu_scale = SCALED, .sweeps = SWEEPS(
		{ "step", keys, plan, run }),
};
