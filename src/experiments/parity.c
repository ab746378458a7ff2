/* parity: compares the engine with golden vectors of the staff's model, group
 * by group */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/stats.h"
#include "bench/option_rows.h"
#include "estimate/model_plan.h"
#include "jit/jit.h"
#include "train/checkpoint.h"
#include "ops/array.h"

// load tokens
static const int32_t *load_tokens(const Model *m, const TensorFile *f,
	const char *path, const char *name, size_t *B,
	size_t *T)
{
	const TensorView *view = tensorfile_find(f, name);
	if (view == NULL || view->ndim != 2 || view->count == 0
		|| view->shape[1] > (size_t)m->shape.context)
		usage_error("%s: expected a tensor '%s' of shape (batch, up to "
			"context_length)", path, name);
	const int32_t *tokens = tensorfile_expect(f, name, "I32",
		view->count)->data;
	for (size_t i = 0; i < view->count; i++)
		if (tokens[i] < 0 || tokens[i] >= m->shape.vocab)
			usage_error("%s: %s[%zu] is %d, outside the vocabulary of %ld",
				path, name, i, tokens[i], m->shape.vocab);
	*B = view->shape[0], *T = view->shape[1];
	return tokens;
}

// compare an array with a reference
static struct Bounds {
	double loss, logits, gradients, step, step_absolute;
	bool relative;               /* logits by their norm */
} bounds;

static struct Bounds choose_bounds(const Device *device, const Policy *policy)
{
	if (policy->fp8)
		return (struct Bounds){ 2e-2, 0.12, 0.35, 2e-2, 1e-2, true };
	if (strcmp(policy->name, "fp32") != 0)
		return (struct Bounds){ 2e-2, 2e-2, 2e-2, 1e-2, 1e-2, true };
	if (strcmp(device->backend->name, "cpu") != 0)
		return (struct Bounds){ 1e-5, 1e-4, 1e-4, 1e-5, 2e-4, false };
	return (struct Bounds){ 1e-6, 2e-5, 2e-5, 1e-6, 5e-5, false };
}

// measure the difference of two arrays
typedef struct Difference {
	double absolute, relative;
} Difference;

static Difference compare(const Model *m, Array a, double unscale,
	const float *reference, size_t n)
{
	real *host = need(malloc(n * sizeof *host));
	array_read(m->device, host, a, n);
	double largest = 0, square = 0, norm = 0;
	for (size_t i = 0; i < n; i++) {
		double d = fabs(host[i] * unscale - reference[i]);
		largest = max_or_nan(largest, d);
		square += d * d;
		norm += (double)reference[i] * reference[i];
	}
	free(host);
	return (Difference){ largest, norm > 0 ? sqrt(square / norm)
		: sqrt(square) };
}

// print an error beside its bound
static bool report(const char *group, const char *worst, double error,
	double bound)
{
	bool ok = error <= bound;
	printf("%-28s %9.2e  (bound %.0e)%s  %s\n", group, error, bound, ok ? ""
		: "  FAILED", worst);
	return ok;
}

// check logits and loss
static bool check_forward(Model *m, const TensorFile *f, const char *path)
{
	size_t B, T, B2, T2;
	const int32_t *tokens = load_tokens(m, f, path, "tokens", &B, &T);
	const int32_t *targets = load_tokens(m, f, path, "targets", &B2, &T2);
	if (B != B2 || T != T2)
		usage_error("%s: tokens and targets differ in shape", path);
	size_t n = B * T * m->shape.vocab;
	const float *logits = tensorfile_expect(f, "logits", "F32", n)->data;
	double reference = *(const double *)tensorfile_expect(f, "loss64", "F64",
		1)->data;
	model_fit_scores(m, B, T, MODE_TRAIN);
	double loss = model_forward(m, tokens, targets, B, T, false);
	bool ok = report("loss, relative", "",
		fabs(loss - reference) / fabs(reference), bounds.loss);
	Difference d = compare(m, m->logits, 1, logits, n);
	model_forward(m, tokens, targets, B, T, true);
	if (bounds.relative)
		return report("logits, relative norm", "", d.relative, bounds.logits)
			&& ok;
	return report("logits, absolute", "", d.absolute, bounds.logits) && ok;
}

// check gradients and three steps
static Difference worst_of(const Model *m, const TensorFile *f,
	const char *prefix, Array (*get)(const Model *, int),
	char *name, size_t size)
{
	Difference worst = { -1, -1 };
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		Parameter p = shape_parameter(&m->shape, i);
		char full[128];
		snprintf(full, sizeof full, "%s%s", prefix, p.name);
		const float *want = tensorfile_expect(f, full, "F32", p.count)->data;
		Difference d = compare(m, get(m, i),
			get == model_gradient ? 1 / m->loss_scale : 1, want, p.count);
		if (!isnan(worst.relative)
			&& max_or_nan(worst.relative, d.relative) != worst.relative)
			snprintf(name, size, "%s", p.name);
		worst.relative = max_or_nan(worst.relative, d.relative);
		worst.absolute = max_or_nan(worst.absolute, d.absolute);
	}
	return worst;
}

// compare gradients, then three steps
static bool check_training(Model *m, const TensorFile *f)
{
	char name[128];
	const int32_t *tokens = tensorfile_find(f, "tokens")->data,
		*targets = tensorfile_find(f, "targets")->data;
	size_t B = m->B, T = m->T;
	model_backward(m, false);
	Difference gradients = worst_of(m, f, "grad.", model_gradient, name,
		sizeof name);
	bool ok = report("gradients, relative norm", name, gradients.relative,
		bounds.gradients);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	update_weights(m, &adamw);
	for (int step = 2; step <= 3; step++) {
		model_forward(m, tokens, targets, B, T, true);
		model_backward(m, false);
		update_weights(m, &adamw);
	}
	optimizer_free(&adamw);
	Difference weights = worst_of(m, f, "step3.", model_weight, name,
		sizeof name);
	ok = report("step 3, relative norm", name, weights.relative,
		bounds.step) && ok;
	return report("step 3, absolute", "", weights.absolute,
		bounds.step_absolute) && ok;
}

// print what is joined at run time
static void print_group(void *unused, const JitGroup *g)
{
	printf("%d operations, %s, ", g->operations, g->shape);
	if (g->C)
		printf("%zu x %zu", g->rows, g->C);
	else
		printf("%zu elements", g->rows);
	printf(", %.0f bytes instead of %.0f\nclosed: %s\n%s\n", g->bytes,
		g->bytes_eager, g->why, g->source);
}

// read the command line of parity
int main(int argc, char **argv)
{
	static const char *device_name = "auto";
	static int precision, fusion, attention = ATTENTION_FLASH;
	static bool explain;
	const Option options[] = {
		DEVICE_OPTION(&device_name),
		PRECISION_OPTION_FOR(&precision,
			"policy; the bounds follow it"),
		FUSION_OR_JIT_OPTION(&fusion),
		{ "explain", OPT_FLAG, &explain, NULL,
			"print what is fused at run time, and its source" },
		ATTENTION_OPTION(&attention),
		{ 0 }
	};
	int first = options_parse(options, argc, argv,
		"FILE.safetensors: compare the engine with golden vectors");
	if (argc - first != 1)
		usage_error("expected one file of golden vectors, got %d arguments",
			argc - first);
	TensorFile *f = tensorfile_open(argv[first]);
	Device *device = device_open(device_name);
	Shape shape = checkpoint_shape(f, argv[first]);
	const JitSettings settings = { .explain = explain ? print_group : NULL };
	if (fusion == FUSION_JIT && !jit_start(device, settings))
		return EXIT_FAILURE;
	Model *m = model_new(device, &shape, &policies[precision], 0);
	if (fusion == FUSION_FUSED) {
		model_fuse(m);
		model_set_attention(m, attention == ATTENTION_FLASH);
	} else if (fusion == FUSION_JIT)
		model_keep_compute(m);
	bounds = choose_bounds(device, m->policy);
	// compare, and say whether all bounds hold
	checkpoint_load(m, f);
	printf("%s: %ld layers, d_model %ld, %ld heads, d_ff %ld, vocabulary %ld\n",
		argv[first], shape.layers, shape.d_model,
		shape.heads, shape.d_ff, shape.vocab);
	bool ok = check_forward(m, f, argv[first]);
	ok = check_training(m, f) && ok;
	printf("%s\n", ok ? "all bounds hold" : "FAILED: see the lines marked above");
	model_free(&m);
	device_close(&device);
	tensorfile_close(&f);
	return ok ? 0 : 1;
}
