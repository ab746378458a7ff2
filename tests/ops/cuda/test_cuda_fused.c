/* every fused operation but attention, on the GPU against the CPU */
#include "tests/ops/cuda/both.h"

// list shapes of fused operations
static const Sizes lengths[] = { { 1 }, { 7 }, { 8 }, { 101 }, { 1030 },
	{ 100003 }, { 0 } };
static const Sizes rows[] = { { 1, 1 }, { 3, 1 }, { 1, 2 }, { 17, 7 },
	{ 3, 64 }, { 1, 101 }, { 3, 768 }, { 17, 1030 }, { 1000, 101 },
	{ 1000, 64 }, { 129, 1600 }, { 5, 5120 }, { 1030, 1600 }, { 300, 5120 },
	{ 140, 8192 }, { 2, 10000 }, { 3, 20484 }, { 0 } };
/* B, T, H, D */
static const Sizes heads[] = { { 1, 1, 1, 2 }, { 3, 17, 3, 6 },
	{ 2, 64, 1, 14 }, { 1, 129, 5, 64 }, { 0 } };
/* matrices, T, T */
static const Sizes squares[] = { { 3, 1, 1 }, { 1, 2, 2 }, { 3, 17, 17 },
	{ 5, 64, 64 }, { 3, 129, 129 }, { 2, 512, 512 }, { 1, 1000, 1000 },
	{ 1, 1032, 1032 }, { 0 } };
/* N, V */
static const Sizes logits[] = { { 1, 1 }, { 3, 2 }, { 129, 7 }, { 17, 101 },
	{ 3, 1030 }, { 1000, 101 }, { 3, 10000 }, { 3, 10248 }, { 3, 10301 }, { 0 } };

// call the fused operations
static void rmsnorm_forward(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	o->fused_rmsnorm_forward(d, (NormForward){ .y = a[0], .rho = a[1],
		.sum = a[2], .x = a[3], .branch = a[4], .g = a[5], .eps = 1e-5 }, n[0],
		n[1]);
}

enum { FRESH = 1, ADDING = 2 };

static void rmsnorm_backward(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	o->fused_rmsnorm_backward(d, (NormBackward){ .dsum = a[0],
		.fresh = how & FRESH, .copy = a[1], .dg = a[2],
		.beta = how & ADDING ? 1 : 0, .y = a[3], .dy = a[4], .sum = a[5],
		.g = a[6], .rho = a[7] }, n[0], n[1]);
}

static void rope(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->fused_rope(d, a[0], a[1], a[2], n[0], n[1], n[2], n[3], how);
}

static void softmax(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	if (how > 0)
		o->fused_softmax_forward(d, a[0], a[1], 0.7, n[0], n[1]);
	else
		o->fused_softmax_backward(d, a[0], a[1], a[2], 0.7, n[0], n[1]);
}

static void swiglu(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	if (how > 0)
		o->fused_swiglu_forward(d, a[0], a[1], n[0], n[1]);
	else
		o->fused_swiglu_backward(d, a[0], a[1], a[2], a[3], n[0], n[1]);
}

static void cross_entropy(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	o->fused_cross_entropy(d, a[0], a[1], a[2], a[3].at, 0.5, n[0], n[1]);
}

/* of two ranks that have the same part */
static void cross_entropy_of_parts(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	for (int rank = 0; rank < 2; rank++)
		o->partial_cross_entropy(d, array_part(d, a[2], 3 * n[0] * rank), a[3],
			a[4].at, n[0], n[1]);
	o->joined_cross_entropy(d, a[0], a[1], a[3], a[2], 2, a[4].at, 0.5, n[0],
		n[1]);
}

static void sgd(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->sgd(d, a[0], a[1], one_gradient(a[2]), a[3], n[0], a[4].at,
		how ? a[5].at : NULL);
}

static void adamw(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->fused_adamw(d, a[0], a[1], one_gradient(a[2]), a[3], a[4], n[0], a[5].at,
		how ? a[6].at : NULL);
}

/* the first five and the first ones again */
static Gradients gradients_of(const Array *a, int n)
{
	Gradients g = { n, { a[0] } };
	for (int k = 1; k < n; k++)
		g.at[k] = a[k % 5];
	return g;
}

static void sgd_sum(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	Array low = { NULL, FP32 };
	o->sgd(d, a[0], low, gradients_of(a + 3, how), a[1], n[0], a[2].at, NULL);
}

static void adamw_sum(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->fused_adamw(d, a[0], a[1], gradients_of(a + 5, how), a[2], a[3], n[0],
		a[4].at, NULL);
}

static const Case cases[] = {

// the rows of fused norms and rotations
#define STREAM .absolute = 64
#define GAIN_SUM .absolute = 8, .over = D0
#define AGAIN .relative = 4
#define NORMALISED OUT(LOW, ALL, .relative = 4, .over = D1), \
	OUT(HIGH, D0, .relative = 3, .over = D1)
{ "rmsnorm_forward", rmsnorm_forward, rows, 0, {
	NORMALISED, OUT(HIGH, ALL), IN(HIGH, ALL, SPREAD), IN(LOW, ALL, SPREAD),
	IN(HIGH, D1, GAIN) } },
{ "rmsnorm_forward_no_branch", rmsnorm_forward, rows, 0, {
	NORMALISED, NOTHING, IN(HIGH, ALL, SPREAD), NOTHING, IN(HIGH, D1, GAIN) } },
#define NORM_INPUTS IN(HIGH, ALL, SPREAD), IN(HIGH, D1, GAIN), \
	IN(HIGH, D0, GAIN)
{ "rmsnorm_forward_low_stream", rmsnorm_forward, rows, 0, {
	OUT(LOW, ALL, .relative = 4, .over = D1, .absolute = 4),
	OUT(HIGH, D0, .relative = 3, .over = D1), OUT(LOW, ALL, .absolute = 1),
	IN(LOW, ALL, SPREAD), IN(LOW, ALL, SPREAD), IN(LOW, D1, GAIN) } },

{ "rmsnorm_backward_low_stream", rmsnorm_backward, rows, 0, {
	UPDATED(LOW, ALL, SPREAD, STREAM), NOTHING, OUT(LOW, D1, GAIN_SUM),
	OVER(4), UPDATED(LOW, ALL, SPREAD, AGAIN), IN(LOW, ALL, SPREAD),
	IN(LOW, D1, GAIN), IN(HIGH, D0, GAIN) } },
{ "rmsnorm_backward_low_stream_high_gain", rmsnorm_backward, rows, FRESH, {
	OUT(LOW, ALL, STREAM), NOTHING, OUT(LOW, D1, GAIN_SUM), NOTHING,
	IN(LOW, ALL, SPREAD), IN(LOW, ALL, SPREAD), IN(HIGH, D1, GAIN),
	IN(HIGH, D0, GAIN) } },

{ "rmsnorm_backward", rmsnorm_backward, rows, ADDING, {
	UPDATED(HIGH, ALL, SPREAD, STREAM), OUT(LOW, ALL, STREAM),
	UPDATED(HIGH, D1, SPREAD, GAIN_SUM), OVER(4),
	UPDATED(LOW, ALL, SPREAD, AGAIN), NORM_INPUTS } },
{ "rmsnorm_backward_low_gradient", rmsnorm_backward, rows, ADDING, {
	UPDATED(HIGH, ALL, SPREAD, STREAM), NOTHING,
	UPDATED(LOW, D1, SPREAD, GAIN_SUM), NOTHING, IN(LOW, ALL, SPREAD),
	NORM_INPUTS } },
{ "rmsnorm_backward_low_fresh", rmsnorm_backward, rows, FRESH, {
	OUT(HIGH, ALL, STREAM), OUT(LOW, ALL, STREAM), OUT(LOW, D1, GAIN_SUM),
	OVER(4), UPDATED(LOW, ALL, SPREAD, AGAIN), NORM_INPUTS } },
{ "rmsnorm_backward_fresh", rmsnorm_backward, rows, FRESH, {
	OUT(HIGH, ALL, STREAM), OUT(LOW, ALL, STREAM), OUT(HIGH, D1, GAIN_SUM),
	OVER(4), UPDATED(LOW, ALL, SPREAD, AGAIN), NORM_INPUTS } },
{ "rmsnorm_backward_no_copy", rmsnorm_backward, rows, FRESH | ADDING, {
	OUT(HIGH, ALL, STREAM), NOTHING, UPDATED(HIGH, D1, SPREAD, GAIN_SUM),
	OUT(LOW, ALL, AGAIN), IN(LOW, ALL, SPREAD), NORM_INPUTS } },
{ "rmsnorm_backward_no_output", rmsnorm_backward, rows, 0, {
	UPDATED(HIGH, ALL, SPREAD, STREAM), NOTHING, OUT(HIGH, D1, GAIN_SUM),
	NOTHING, IN(LOW, ALL, SPREAD), NORM_INPUTS } },

#define ROTATED UPDATED(LOW, ALL, SPREAD, .absolute = 8, .times = 3), \
	IN(HIGH, D1 | D3, SPREAD), IN(HIGH, D1 | D3, SPREAD)
{ "rope_forward", rope, heads, 1, { ROTATED } },
{ "rope_backward", rope, heads, -1, { ROTATED } },

// the rows of softmax
#define WEIGHT .relative = 96, .over = D1
{ "softmax_forward", softmax, squares, 1, {
	OUT(LOW, ALL, WEIGHT), IN(LOW, ALL, LOWER) } },
{ "softmax_forward_in_place", softmax, squares, 1, {
	OVER(1), UPDATED(LOW, ALL, LOWER, WEIGHT) } },
{ "softmax_backward", softmax, squares, -1, {
	OUT(LOW, ALL, .absolute = 160), IN(LOW, ALL, LOWER),
	IN(LOW, ALL, WEIGHTS) } },
{ "softmax_backward_in_place", softmax, squares, -1, {
	OVER(1), UPDATED(LOW, ALL, LOWER, .absolute = 160),
	IN(LOW, ALL, WEIGHTS) } },
#define GATED .relative = 64, .absolute = 128
#define UNGATED .relative = 64, .absolute = 6000
{ "swiglu_forward", swiglu, rows, 1, {
	OUT(LOW, ALL, GATED), IN(LOW, ALL, GATE, .times = 2) } },
{ "swiglu_backward", swiglu, rows, -1, {
	OUT(LOW, ALL, UNGATED, .times = 2), OUT(LOW, ALL, GATED),
	IN(LOW, ALL, SPREAD), IN(LOW, ALL, GATE, .times = 2) } },
{ "swiglu_backward_in_place", swiglu, rows, -1, {
	OVER(3), OVER(2), UPDATED(LOW, ALL, SPREAD, GATED),
	UPDATED(LOW, ALL, GATE, UNGATED, .times = 2) } },
#define LOSS OUT(HIGH, D0, .absolute = 64)
#define LOGIT_GRADIENT .relative = 96, .absolute = 32
{ "cross_entropy", cross_entropy, logits, 0, {
	LOSS, OUT(LOW, ALL, LOGIT_GRADIENT), IN(LOW, ALL, WIDE),
	IN(INTEGER, D0, TOKENS) } },
{ "cross_entropy_in_place", cross_entropy, logits, 0, {
	LOSS, OVER(2), UPDATED(LOW, ALL, WIDE, LOGIT_GRADIENT),
	IN(INTEGER, D0, TOKENS) } },
{ "cross_entropy_losses_alone", cross_entropy, logits, 0, {
	LOSS, NOTHING, IN(LOW, ALL, WIDE), IN(INTEGER, D0, TOKENS) } },
#define JOINED OUT(HIGH, D0, .absolute = 128)
#define TERMS OUT(HIGH, D0, .times = 6, .relative = 96, .absolute = 64)
{ "cross_entropy_of_parts", cross_entropy_of_parts, logits, 0, {
	JOINED, OUT(LOW, ALL, LOGIT_GRADIENT), TERMS, IN(LOW, ALL, WIDE),
	IN(INTEGER, D0, SOME_TOKENS) } },
{ "cross_entropy_of_parts_in_place", cross_entropy_of_parts, logits, 0, {
	JOINED, OVER(3), TERMS, UPDATED(LOW, ALL, WIDE, LOGIT_GRADIENT),
	IN(INTEGER, D0, SOME_TOKENS) } },
{ "cross_entropy_of_parts_losses_alone", cross_entropy_of_parts, logits, 0, {
	JOINED, NOTHING, TERMS, IN(LOW, ALL, WIDE), IN(INTEGER, D0, SOME_TOKENS) } },

// the rows of fused AdamW
#define AVERAGES UPDATED(HIGH, ALL, SPREAD, .absolute = 4), \
	UPDATED(HIGH, ALL, GAIN, .relative = 4), IN(HIGH, 0, STEP, .times = 8)
#define MOMENTS IN(HIGH, ALL, SPREAD), AVERAGES
{ "adamw", adamw, lengths, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), OUT(LOW, ALL, .absolute = 4),
	MOMENTS } },
{ "adamw_no_copy", adamw, lengths, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), NOTHING, MOMENTS } },
{ "adamw_low_gradient", adamw, lengths, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), OUT(LOW, ALL, .absolute = 4),
	IN(LOW, ALL, SPREAD), AVERAGES } },
{ "adamw_low_gradient_other_copy", adamw, lengths, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), OUT(OTHER, ALL, .absolute = 4),
	IN(LOW, ALL, SPREAD), AVERAGES } },

#define SUMMANDS IN(LOW, ALL, SPREAD), IN(LOW, ALL, SPREAD), \
	IN(LOW, ALL, SPREAD), IN(LOW, ALL, SPREAD), IN(LOW, ALL, SPREAD)
#define ADAMW_SUM UPDATED(HIGH, ALL, SPREAD, .absolute = 16), \
	OUT(OTHER, ALL, .absolute = 16), UPDATED(HIGH, ALL, SPREAD, .absolute = 16), \
	UPDATED(HIGH, ALL, GAIN, .relative = 16), IN(HIGH, 0, STEP, .times = 8), \
	SUMMANDS
{ "adamw_of_two", adamw_sum, lengths, 2, { ADAMW_SUM } },
{ "adamw_of_three", adamw_sum, lengths, 3, { ADAMW_SUM } },
{ "adamw_of_eight", adamw_sum, lengths, 8, { ADAMW_SUM } },

#define LOW_AVERAGES UPDATED(LOW, ALL, SPREAD, .absolute = 4), \
	UPDATED(LOW, ALL, GAIN, .relative = 4), IN(HIGH, 0, STEP, .times = 8)
{ "adamw_low_state", adamw, lengths, 0, {
	UPDATED(LOW, ALL, SPREAD, .absolute = 4), NOTHING, IN(LOW, ALL, SPREAD),
	LOW_AVERAGES } },
{ "adamw_low_state_high_gradient", adamw, lengths, 0, {
	UPDATED(LOW, ALL, SPREAD, .absolute = 4), NOTHING, IN(HIGH, ALL, SPREAD),
	LOW_AVERAGES } },
{ "adamw_low_state_of_two", adamw_sum, lengths, 2, {
	UPDATED(LOW, ALL, SPREAD, .absolute = 16), NOTHING,
	UPDATED(LOW, ALL, SPREAD, .absolute = 16),
	UPDATED(LOW, ALL, GAIN, .relative = 16), IN(HIGH, 0, STEP, .times = 8),
	SUMMANDS } },
{ "sgd_of_three", sgd_sum, lengths, 3, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 32),
	UPDATED(HIGH, ALL, SPREAD, .absolute = 32), IN(HIGH, 0, STEP, .times = 8),
	SUMMANDS } },

{ "adamw_not_skipped", adamw, lengths, 1, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), OUT(LOW, ALL, .absolute = 4),
	MOMENTS, IN(INTEGER, 0, ZERO) } },
{ "adamw_skipped", adamw, lengths, 1, {
	UPDATED(HIGH, ALL, SPREAD), UPDATED(LOW, ALL, SPREAD),
	IN(HIGH, ALL, SPREAD), UPDATED(HIGH, ALL, SPREAD),
	UPDATED(HIGH, ALL, GAIN), IN(HIGH, 0, STEP, .times = 8),
	IN(INTEGER, 0, ONE) } },
{ "sgd", sgd, lengths, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), OUT(LOW, ALL, .absolute = 4),
	IN(HIGH, ALL, SPREAD), UPDATED(HIGH, ALL, SPREAD, .absolute = 4),
	IN(HIGH, 0, STEP, .times = 8) } },
{ "sgd_low_gradient", sgd, lengths, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), OUT(LOW, ALL, .absolute = 4),
	IN(LOW, ALL, SPREAD), UPDATED(HIGH, ALL, SPREAD, .absolute = 4),
	IN(HIGH, 0, STEP, .times = 8) } },
{ "sgd_no_velocity", sgd, lengths, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), OUT(LOW, ALL, .absolute = 4),
	IN(HIGH, ALL, SPREAD), NOTHING, IN(HIGH, 0, STEP, .times = 8) } },
{ "sgd_skipped", sgd, lengths, 1, {
	UPDATED(HIGH, ALL, SPREAD), UPDATED(LOW, ALL, SPREAD),
	IN(HIGH, ALL, SPREAD), UPDATED(HIGH, ALL, SPREAD),
	IN(HIGH, 0, STEP, .times = 8), IN(INTEGER, 0, ONE) } },
};

int main(void)
{
	struct CMUnitTest tests[sizeof cases / sizeof *cases];
	list_cases(tests, cases, sizeof cases / sizeof *cases);
	return cmocka_run_group_tests(tests, open_both, close_both);
}
