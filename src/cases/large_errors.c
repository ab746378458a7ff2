#include "cases/large_errors.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/array.h"
#include "train/checkpoint.h"
#include "train/step.h"

/* PyTorch's form that a policy is held against */
static const char *const forms[NPOLICIES] = { [POLICY_FP32] = "fp32",
	[POLICY_BF16] = "autocast", [POLICY_BF16_STREAM] = "bf16",
	[POLICY_BF16_STATE] = "bf16" };

typedef struct GoldenRun {
	Row *row;
	const TensorFile *file;
	const char *form;
	size_t most;                     /* elements that the file has of a tensor */
	Model *m;
	const int32_t *tokens, *targets;
	size_t B, T;
} GoldenRun;

/* sums of squares: of our errors and PyTorch's, and of the reference; theirs < 0:
 * the file has no numbers of PyTorch's */
typedef struct Squares {
	double ours, theirs, whole;
} Squares;

// find what the file has of a tensor
static const TensorView *find_tensor(const GoldenRun *h, const char *form,
	const char *group, const char *name)
{
	char full[160];
	snprintf(full, sizeof full, "%s%s%s%s", form, *form ? "." : "", group, name);
	return tensorfile_find(h->file, full);
}

static const float *floats(const GoldenRun *h, const char *form,
	const char *group,
	const char *name, size_t count)
{
	const TensorView *v = find_tensor(h, form, group, name);
	return v ? tensorfile_expect(h->file, v->name, "F32", count)->data : NULL;
}

/* the file has elements 0, stride, 2 * stride ... of n */
static size_t stride_of(const GoldenRun *h, size_t n)
{
	return h->most ? ((n + h->most - 1) / h->most) | 1 : 1;
}

// add the squares of a tensor
/* adds the squares of a tensor of n elements; from: its values before training,
 * or NULL */
static void add_squares(const GoldenRun *h, Squares *s, Array a, size_t n,
	const char *group, const char *name, const float *from)
{
	size_t stride = stride_of(h, n), count = (n + stride - 1) / stride;
	const float *want = floats(h, "", group, name, count),
		*theirs = floats(h, h->form, group, name, count);
	if (want == NULL)
		usage_error("the file of golden vectors lacks %s%s", group, name);
	real *ours = need(malloc(n * sizeof *ours));
	array_read(h->m->device, ours, a, n);
	for (size_t i = 0; i < count; i++) {
		double x = want[i], d = ours[i * stride] - x,
			e = theirs ? theirs[i] - x : 0,
			y = from ? x - from[i * stride] : x;
		s->ours += d * d;
		s->theirs += e * e;
		s->whole += y * y;
	}
	if (theirs == NULL)
		s->theirs = -1;
	free(ours);
}

// emit an error of a kind
static void emit(const GoldenRun *h, const char *what, const char *of, Squares s)
{
	Row *row = h->row;
	row_set(row, "precision", "%s", h->m->policy->name);
	row_set(row, "beside", "%s", h->form);
	row_set(row, "what", "%s", what);
	row_set(row, "of", "%s", of);
	row_set(row, "error", "%.4e", sqrt(s.ours / s.whole));
	row_set(row, "pytorch_error", s.theirs >= 0 ? "%.4e" : "-",
		sqrt(s.theirs / s.whole));
	row_emit(row);
}

// emit the errors of a pass and of three steps
#define PARAMETER_KINDS_OF(FIRST, NEXT) FIRST(EMBEDDING, "embedding") \
	NEXT(ATTENTION, "attention") NEXT(FFN, "FFN") NEXT(NORMS, "norms") \
	NEXT(HEAD, "head")
enum { CHOICE_IDS(PARAMETER_KINDS_OF) NPARAMETER_KINDS };
static const char *const kinds[] = { CHOICE_NAMES(PARAMETER_KINDS_OF) };

static int kind_of(const Parameter *p)
{
	return p->gain ? NORMS : strstr(p->name, ".attn.") ? ATTENTION
		: strstr(p->name, ".ffn.") ? FFN
		: strstr(p->name, "lm_head") ? HEAD : EMBEDDING;
}

static void emit_kinds(const GoldenRun *h, const char *what, const char *group,
	Array (*get)(const Model *, int))
{
	Squares sums[NPARAMETER_KINDS] = { 0 };
	for (int i = 0; i < shape_nparameters(&h->m->shape); i++) {
		Parameter p = shape_parameter(&h->m->shape, i);
		const float *from = get == model_weight ? tensorfile_expect(h->file,
			p.name, "F32", p.count)->data : NULL;
		add_squares(h, &sums[kind_of(&p)], get(h->m, i), p.count, group,
			p.name, from);
	}
	for (int k = 0; k < NPARAMETER_KINDS; k++)
		emit(h, what, kinds[k], sums[k]);
}

// emit the errors of loss and logits
static void emit_forward(const GoldenRun *h)
{
	double loss = model_forward(h->m, h->tokens, h->targets, h->B, h->T, false),
		want = *(const double *)tensorfile_expect(h->file, "loss64", "F64",
			1)->data;
	const float *theirs = floats(h, h->form, "", "loss", 1);
	emit(h, "loss", "batch", (Squares){ pow(loss - want, 2),
		theirs ? pow(*theirs - want, 2) : -1, want * want });
	Squares logits = { 0 };
	add_squares(h, &logits, h->m->logits, h->B * h->T * h->m->shape.vocab, "",
		"logits", NULL);
	emit(h, "logits", "batch", logits);
}

// emit the errors of gradients and updates
static void emit_training(const GoldenRun *h)
{
	Optimizer adamw = adamw_new(h->m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	for (int step = 1; step <= 3; step++) {
		model_forward(h->m, h->tokens, h->targets, h->B, h->T, true);
		model_backward(h->m, false);
		if (step == 1)
			emit_kinds(h, "gradient", "grad.", model_gradient);
		update_weights(h->m, &adamw);
	}
	optimizer_free(&adamw);
	emit_kinds(h, "update", "step3.", model_weight);
}

// hold policies against a file
static const int32_t *read_batch(GoldenRun *h, const Shape *s, const char *path,
	const char *name)
{
	const TensorView *v = tensorfile_find(h->file, name);
	if (v == NULL || v->ndim != 2 || v->count == 0
		|| v->shape[1] > (size_t)s->context)
		usage_error("%s: expected '%s' of shape (batch, up to context_length)",
			path, name);
	if (h->B && (h->B != v->shape[0] || h->T != v->shape[1]))
		usage_error("%s: tokens and targets differ in shape", path);
	h->B = v->shape[0], h->T = v->shape[1];
	const int32_t *tokens = tensorfile_expect(h->file, name, "I32",
		v->count)->data;
	for (size_t i = 0; i < v->count; i++)
		if (tokens[i] < 0 || tokens[i] >= s->vocab)
			usage_error("%s: %s[%zu] is %d, outside the vocabulary of %ld",
				path, name, i, tokens[i], s->vocab);
	return tokens;
}

// open golden vectors and read their shape
/* opens the file, which the caller closes, and returns the model's shape */
static Shape open_golden_run(GoldenRun *h, TensorFile **f, const char *path)
{
	h->file = *f = tensorfile_open(path);
	Shape shape = checkpoint_shape(*f, path);
	h->tokens = read_batch(h, &shape, path, "tokens");
	h->targets = read_batch(h, &shape, path, "targets");
	if (tensorfile_meta(*f, "sample"))
		h->most = metadata_integer(*f, path, "sample", 1, LONG_MAX);
	return shape;
}

void large_errors_shape(LargeConfig *to, const char *path)
{
	GoldenRun h = { 0 };
	TensorFile *f;
	Shape s = open_golden_run(&h, &f, path);
	to->vocabulary = s.vocab, to->d_model = s.d_model, to->d_ff = s.d_ff;
	to->layers = s.layers, to->heads = s.heads;
	to->context = h.T, to->batch = h.B;
	tensorfile_close(&f);
}

// measure each policy against the file
void large_errors_run(Row *row, const LargeConfig *c, const char *path,
	const int *policy, int npolicies)
{
	GoldenRun h = { .row = row };
	TensorFile *f;
	Shape shape = open_golden_run(&h, &f, path);
	Device *d = harness_device();
	for (int i = 0; i < npolicies; i++) {
		h.form = forms[policy[i]];
		h.m = model_new(d, &shape, &policies[policy[i]], harness_seed);
		model_fuse(h.m);
		checkpoint_load(h.m, f);
		emit_forward(&h);
		model_follow(h.m, &(ModelPlan){ .head_chunk = c->head_tokens });
		emit_training(&h);
		model_free(&h.m);
	}
	tensorfile_close(&f);
}
