/* pytorch_peers: the same training step by our engine and by PyTorch */
#include <string.h>

#include "base/error.h"
#include "experiments/harness.h"
#include "experiments/peer.h"
#include "experiments/step.h"

static const char *only_impl, *only_size, *only_precision;
static long batch = 4, context = 512, warmup = 5, steps = 10, limit_s = 420;

static const Option options[] = {
	{ "impl", OPT_TEXT, &only_impl, "NAME", "one implementation: ours, "
		"ours-eager, pytorch-eager, pytorch-compiled or pytorch-best; the last "
		"two also with -blocks at the end" },
	{ "size", OPT_TEXT, &only_size, "NAME", "one size" },
	{ "precision", OPT_TEXT, &only_precision, "NAME", "fp32 or bf16" },
	{ "batch", OPT_INT, &batch, "1..1024", "sequences in a batch" },
	{ "context", OPT_INT, &context, "1..65536",
		"tokens in a sequence (on a CPU, divided by 16)" },
	{ "warmup", OPT_INT, &warmup, "2..1000", "steps before the measured ones" },
	{ "steps", OPT_INT, &steps, "1..1000", "measured steps" },
	{ "limit", OPT_INT, &limit_s, "1..86400",
		"seconds that one row of PyTorch may take" },
	{ 0 }
};

static bool wanted(const char *only, const char *name)
{
	return only == NULL || strcmp(only, name) == 0;
}

static void plan(Plan *plan)
{
	enum { SMALL = 2, ALL = NTRAINED };   /* sizes that are compiled as a whole */
	static const struct { const char *precision, *impl; int sizes; } forms[] = {
		{ "bf16", "ours", ALL }, { "bf16", "ours-eager", ALL },
		{ "bf16", "pytorch-eager", ALL }, { "fp32", "ours", ALL },
		{ "fp32", "ours-eager", ALL }, { "fp32", "pytorch-eager", ALL },
		{ "bf16", "pytorch-best-blocks", ALL },
		{ "bf16", "pytorch-compiled-blocks", ALL },
		{ "bf16", "pytorch-best", SMALL }, { "bf16", "pytorch-compiled", SMALL },
	};
	bool gpu = harness_on_gpu(), any = false;
	for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
		for (int i = 0; i < forms[f].sizes; i++) {
			const char *impl = forms[f].impl;
			if (!wanted(only_impl, impl)
				|| !wanted(only_size, model_sizes[i].name)
				|| !wanted(only_precision, forms[f].precision)
				|| (!gpu && strcmp(forms[f].precision, "fp32") != 0))
				continue;
			any = true;
			plan_add(plan, "%s\t%s\t%ld\t%s", impl, model_sizes[i].name,
				gpu ? context : context / SCALE, forms[f].precision);
		}
	if (!any)
		usage_error("no row has this implementation, size and precision");
}
static void time_ours(Row *row, bool fused)
{
	const Policy *policy = policy_find(row_text(row, "precision"));
	Shape shape = row_shape(row);
	Device *device = harness_device();
	Model *m = model_new(device, &shape, policy, harness_seed);
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
static void time_theirs(Row *row, const char *form)
{
	bool blocks = strstr(form, "-blocks") != NULL;
	peer_measure(row, "fwd_only_ms fwd_ms bwd_ms opt_ms step_ms step_sd_ms "
		"peak_MiB loss", limit_s, "pytorch_peer.py", "time --impl %.*s%s "
		"--size %s --context %s --batch %ld --precision %s --warmup %ld "
		"--steps %ld --seed %ld", (int)strcspn(form, "-"), form,
		blocks ? " --blocks" : "", row_text(row, "size"),
		row_text(row, "context"), batch, row_text(row, "precision"), warmup,
		steps, harness_seed);
}

static void run(Row *row)
{
	const char *impl = row_text(row, "impl");
	if (strncmp(impl, "ours", 4) == 0)
		time_ours(row, strcmp(impl, "ours") == 0);
	else
		time_theirs(row, impl + strlen("pytorch-"));
}

static const char *scale(void)
{
	return harness_on_gpu() ? "course" : SCALED;
}

int main(int argc, char **argv)
{
	const Sweep sweeps[] = {
		{ "step", "impl size context precision", "fwd_only_ms fwd_ms bwd_ms "
			"opt_ms step_ms step_sd_ms peak_MiB loss", plan, run },
		{ 0 }
	};
	const Experiment e = {
		.name = "pytorch_peers", .options = options, .sweeps = sweeps,
		.about = "one training step, ours and PyTorch's, side by side",
		.scale = scale,
	};
	return harness_main(&e, argc, argv);
}
