#include "cases/kernel_case.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"
#include "bench/harness.h"
#include "train/optimizer.h"

// call operations on lists of arguments
enum { FORWARD = 1 };
#define EPS 1e-5
#define QUEUES(NAME, CALL)                                      \
	static void NAME(Device *d, const Array *a, const KernelSizes *s) \
	{                                                           \
		ops_for(d)->CALL;                                       \
	}

QUEUES(cast, cast(d, a[0], a[1], s->N * s->F))
QUEUES(add, add(d, a[0], a[1], a[2], s->N * s->C))
QUEUES(embed, embedding_forward(d, a[0], a[1], a[2].at, s->N, s->C))
QUEUES(embed_back, embedding_backward(d, a[0], 0, a[1], a[2].at, s->N, s->C,
	s->V))
QUEUES(norm, rmsnorm_forward(d, a[0], a[1], a[2], a[3], s->N, s->C, EPS))
QUEUES(norm_back, rmsnorm_backward(d, a[0], a[1], a[2], a[3], a[4], a[5], s->N,
	s->C))
QUEUES(layernorm, layernorm_forward(d, a[0], a[1], a[2], a[3], a[4], a[5], s->N,
	s->C, EPS))
QUEUES(layernorm_back, layernorm_backward(d, a[0], a[1], a[2], a[3], a[4], a[5],
	a[6], a[7], s->N, s->C))
QUEUES(softmax, softmax_forward(d, a[0], a[1], 1 / sqrt(s->D), s->B * s->H,
	s->T))
QUEUES(softmax_back, softmax_backward(d, a[0], a[1], a[2], 1 / sqrt(s->D),
	s->B * s->H, s->T))
QUEUES(swiglu, swiglu_forward(d, a[0], a[1], a[2], s->N * s->F))
QUEUES(swiglu_back, swiglu_backward(d, a[0], a[1], a[2], a[3], a[4],
	s->N * s->F))
QUEUES(adamw, adamw(d, a[0], (Array){ NULL, FP32 }, a[1], a[2], a[3],
	s->parameters, a[4].at, NULL))

// call fused operations on lists of arguments
QUEUES(fused_norm, fused_rmsnorm_forward(d, (NormForward){ .y = a[0],
	.rho = a[1], .sum = a[2], .x = a[3], .branch = a[4], .g = a[5],
	.eps = EPS }, s->N, s->C))
QUEUES(fused_norm_back, fused_rmsnorm_backward(d, (NormBackward){ .dsum = a[0],
	.copy = a[1], .dg = a[2], .y = a[3], .dy = a[4], .sum = a[5], .g = a[6],
	.rho = a[7] }, s->N, s->C))
QUEUES(fused_rope, fused_rope(d, a[0], a[1], a[2], s->B, s->T, s->H, s->D,
	FORWARD))
QUEUES(fused_softmax, fused_softmax_forward(d, a[0], a[1], 1 / sqrt(s->D),
	s->B * s->H, s->T))
QUEUES(fused_softmax_back, fused_softmax_backward(d, a[0], a[1], a[2],
	1 / sqrt(s->D), s->B * s->H, s->T))
QUEUES(fused_swiglu, fused_swiglu_forward(d, a[0], a[1], s->N, s->F))
QUEUES(fused_swiglu_back, fused_swiglu_backward(d, a[0], a[1], a[2], a[3], s->N,
	s->F))
QUEUES(fused_loss, fused_cross_entropy(d, a[0], a[1], a[2], a[3].at, 1.0 / s->N,
	s->N, s->V))
QUEUES(fused_adamw, fused_adamw(d, a[0], a[1], one_gradient(a[2]), a[3], a[4],
	s->parameters, a[5].at, NULL))

// list the operations and their arguments
const TimedOperation kernel_operations[] = {
	{ "cast down", "eager", cast, LOW_ONLY, {
		{ INNER, LOW, WRITE }, { INNER, FULL, READ } } },
	{ "cast up", "eager", cast, LOW_ONLY, {
		{ INNER, FULL, WRITE }, { INNER, LOW, READ } } },
	{ "add", "eager", add, ANY, {
		{ HIDDEN, FULL, WRITE }, { HIDDEN, FULL, READ },
		{ HIDDEN, LOW, READ } } },
	{ "embedding forward", "eager", embed, FP32_ONLY, {
		{ HIDDEN, FULL, WRITE }, { ENTRIES, FULL, READ },
		{ TOKENS, FULL, READ } } },
	{ "embedding backward", "eager", embed_back, FP32_ONLY, {
		{ TABLE, FULL, WRITE }, { HIDDEN, FULL, READ },
		{ TOKENS, FULL, READ } } },
	// list the norms and their arguments
	{ "rmsnorm forward", "eager", norm, ANY, {
		{ HIDDEN, LOW, WRITE }, { ROW, FULL, WRITE }, { HIDDEN, FULL, READ },
		{ GAIN, FULL, READ } } },
	{ "rmsnorm forward", "fused", fused_norm, ANY, {
		{ HIDDEN, LOW, WRITE }, { ROW, FULL, WRITE }, { HIDDEN, FULL, WRITE },
		{ HIDDEN, FULL, READ }, { HIDDEN, LOW, READ }, { GAIN, FULL, READ } } },
	{ "rmsnorm backward", "eager", norm_back, ANY, {
		{ HIDDEN, FULL, BOTH }, { GAIN, FULL, BOTH }, { HIDDEN, LOW, READ },
		{ HIDDEN, FULL, READ }, { GAIN, FULL, READ }, { ROW, FULL, READ } } },
	{ "rmsnorm backward", "fused", fused_norm_back, ANY, {
		{ HIDDEN, FULL, BOTH }, { HIDDEN, EXTRA, WRITE }, { GAIN, FULL, WRITE },
		{ HIDDEN, LOW, WRITE }, { HIDDEN, LOW, READ }, { HIDDEN, FULL, READ },
		{ GAIN, FULL, READ }, { ROW, FULL, READ } } },
	{ "layernorm forward", "eager", layernorm, ANY, {
		{ HIDDEN, LOW, WRITE }, { ROW, FULL, WRITE }, { ROW, FULL, WRITE },
		{ HIDDEN, FULL, READ }, { GAIN, FULL, READ }, { GAIN, FULL, READ } } },
	{ "layernorm backward", "eager", layernorm_back, ANY, {
		{ HIDDEN, FULL, BOTH }, { GAIN, FULL, BOTH }, { GAIN, FULL, BOTH },
		{ HIDDEN, LOW, READ }, { HIDDEN, FULL, READ }, { GAIN, FULL, READ },
		{ ROW, FULL, READ }, { ROW, FULL, READ } } },
	{ "rope", "fused", fused_rope, ANY, {
		{ QKV, LOW, BOTH }, { ANGLES, FULL, READ }, { ANGLES, FULL, READ } } },
	// list softmax, SwiGLU and their arguments
	{ "softmax forward", "eager", softmax, ANY, {
		{ SCORES, LOW, WRITE }, { TRIANGLE, LOW, READ } } },
	{ "softmax forward", "fused", fused_softmax, ANY, {
		{ SCORES, LOW, WRITE }, { TRIANGLE, LOW, READ } } },
	{ "softmax backward", "eager", softmax_back, ANY, {
		{ SCORES, LOW, WRITE }, { TRIANGLE, LOW, READ },
		{ ATTENTION, LOW, READ } } },
	{ "softmax backward", "fused", fused_softmax_back, ANY, {
		{ SCORES, LOW, WRITE }, { TRIANGLE, LOW, READ },
		{ ATTENTION, LOW, READ } } },
	{ "swiglu forward", "eager", swiglu, ANY, {
		{ INNER, LOW, WRITE }, { INNER, LOW, READ }, { INNER, LOW, READ } } },
	{ "swiglu forward", "fused", fused_swiglu, ANY, {
		{ INNER, LOW, WRITE }, { GATE_UP, LOW, READ } } },
	{ "swiglu backward", "eager", swiglu_back, ANY, {
		{ INNER, LOW, WRITE }, { INNER, LOW, WRITE }, { INNER, LOW, READ },
		{ INNER, LOW, READ }, { INNER, LOW, READ } } },
	{ "swiglu backward", "fused", fused_swiglu_back, ANY, {
		{ GATE_UP, LOW, WRITE }, { INNER, LOW, WRITE }, { INNER, LOW, READ },
		{ GATE_UP, LOW, READ } } },
	{ "cross-entropy", "fused", fused_loss, ANY, {
		{ ROW, FULL, WRITE }, { LOGITS, LOW, WRITE }, { LOGITS, LOW, READ },
		{ TOKENS, FULL, READ } } },
	{ "adamw", "eager", adamw, FP32_ONLY, {
		{ WEIGHTS, FULL, BOTH }, { WEIGHTS, FULL, READ },
		{ WEIGHTS, FULL, BOTH }, { SQUARES, FULL, BOTH },
		{ SCALARS, FULL, READ } } },
	{ "adamw", "fused", fused_adamw, ANY, {
		{ WEIGHTS, FULL, BOTH }, { WEIGHTS, EXTRA, WRITE },
		{ WEIGHTS, FULL, READ }, { WEIGHTS, FULL, BOTH },
		{ SQUARES, FULL, BOTH }, { SCALARS, FULL, READ } } },
	{ 0 }
};

// count elements
Type kernel_type(KernelArgument a, Type low)
{
	return a.kind == FULL ? FP32 : low;
}

bool kernel_lacks(KernelArgument a, Type low)
{
	return a.kind == EXTRA && low == FP32;
}

size_t kernel_length(ArgumentExtent e, const KernelSizes *s)
{
	switch (e) {
	case HIDDEN: return s->N * s->C;
	case INNER: return s->N * s->F;
	case GATE_UP: return 2 * s->N * s->F;
	case QKV: return 3 * s->N * s->C;
	case SCORES: case TRIANGLE: case ATTENTION: return s->N * s->H * s->T;
	case LOGITS: return s->N * s->V;
	case TOKENS: case ROW: return s->N;
	case GAIN: return s->C;
	case ANGLES: return s->T * (s->D / 2);
	case TABLE: case ENTRIES: return s->V * s->C;
	case WEIGHTS: case SQUARES: return s->parameters;
	case SCALARS: return sizeof(AdamWStep) / sizeof(float);
	case NONE: break;
	}
	return 0;
}

// make a set of arguments
static int32_t *tokens;

// set angles
static void set_angles(Device *d, Array a, size_t n, double (*f)(double))
{
	real *values = need(malloc(n * sizeof *values));
	for (size_t i = 0; i < n; i++)
		values[i] = (real)f(7 * random_uniform(harness_seed, 2, i));
	array_write(d, a, values, n);
	free(values);
}

/* sets what argument i, a, holds before the first run */
static void set_argument(Device *d, Array a, KernelArgument as,
	const KernelSizes *s, int i)
{
	const Ops *o = ops_for(d);
	size_t n = kernel_length(as.extent, s);
	if (as.extent == TOKENS) {
		device_upload(d, a.at, tokens, n * sizeof *tokens);
	} else if (as.extent == SCALARS) {
		AdamWStep step = adamw_scalars(&(OptimizerSettings){ .lr = 1e-3,
			.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.01 }, 1, 1);
		device_upload(d, a.at, &step, sizeof step);
	} else if (as.extent == ANGLES) {
		set_angles(d, a, n, i == 1 ? cos : sin);
	} else if (as.use == WRITE) {
		o->fill(d, a, NAN, n);
	} else if (as.extent == SQUARES) {
		o->fill(d, a, 0.5, n);
	} else {
		o->draw(d, a, n, 1, 4, harness_seed, i, 0);
	}
	if (as.extent == ATTENTION)
		o->softmax_forward(d, a, a, 1, s->B * s->H, s->T);
}

// allocate and free a set
void kernel_set_new(Device *d, Array *set, const Array *from,
	const TimedOperation *op, const KernelSizes *s, Type low)
{
	for (int i = 0; op->arguments[i].extent; i++) {
		KernelArgument as = op->arguments[i];
		size_t n = kernel_length(as.extent, s);
		set[i] = (Array){ NULL, kernel_type(as, low) };
		if (kernel_lacks(as, low))
			continue;
		set[i] = array_new(d, n, set[i].type, MEM_TEMPORARY, op->name);
		if (from && as.extent != TOKENS && as.extent != SCALARS)
			ops_for(d)->cast(d, set[i], from[i], n);
		else
			set_argument(d, set[i], as, s, i);
	}
}

void kernel_set_free(Device *d, Array *set)
{
	for (int i = 0; i < NARGUMENTS; i++)
		device_free(d, set[i].at);
}

// draw the tokens of a batch
KernelSizes kernel_sizes(const Shape *shape, size_t batch, size_t context,
	size_t parameters)
{
	KernelSizes s = { .B = batch, .T = context, .C = shape->d_model,
		.F = shape->d_ff, .H = shape->heads, .V = shape->vocab,
		.parameters = parameters };
	s.N = s.B * s.T;
	s.D = s.C / s.H;
	bool *seen = need(calloc(s.V, sizeof *seen));
	tokens = need(malloc(s.N * sizeof *tokens));
	for (size_t i = 0; i < s.N; i++) {
		tokens[i] = (int32_t)(random_bits(harness_seed, 1, i) % s.V);
		s.distinct += !seen[tokens[i]];
		seen[tokens[i]] = true;
	}
	free(seen);
	return s;
}
