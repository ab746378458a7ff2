/* the eager operations but matmul, on the GPU against the CPU */
#include "tests/ops/cuda/both.h"

// list shapes: lengths, rows, sequences, vocabularies
static const Sizes lengths[] = { { 1 }, { 2 }, { 7 }, { 8 }, { 64 }, { 101 },
	{ 1030 }, { 100003 }, { 0 } };
static const Sizes rows[] = { { 1, 1 }, { 3, 1 }, { 1, 2 }, { 17, 7 },
	{ 3, 64 }, { 1, 101 }, { 3, 768 }, { 17, 1030 }, { 1000, 101 },
	{ 1000, 64 }, { 5, 5120 }, { 1030, 1600 }, { 300, 5120 }, { 0 } };
/* B, T, H, D */
static const Sizes heads[] = { { 1, 1, 1, 2 }, { 3, 17, 3, 6 },
	{ 2, 64, 1, 14 }, { 1, 129, 5, 64 }, { 0 } };
/* matrices, T, T */
static const Sizes squares[] = { { 3, 1, 1 }, { 1, 2, 2 }, { 3, 17, 17 },
	{ 5, 64, 64 }, { 3, 129, 129 }, { 1, 1000, 1000 }, { 0 } };
/* N, C, V: many tokens of few kinds, and few of many */
static const Sizes embeddings[] = { { 1, 1, 1 }, { 129, 7, 3 }, { 17, 64, 101 },
	{ 1000, 101, 7 }, { 17, 768, 101 }, { 3, 65, 10000 }, { 0 } };
/* N, V */
static const Sizes logits[] = { { 1, 1 }, { 3, 2 }, { 129, 7 }, { 17, 101 },
	{ 3, 1030 }, { 1000, 101 }, { 3, 10000 }, { 0 } };

// call the elementwise operations
static void fill(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->fill(d, a[0], how / 10.0, n[0]);
}

static void draw(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->draw(d, a[0], n[0], 0.3, how, 42, 7, 5);           /* how: the bound */
}

static void cast(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->cast(d, a[0], a[1], n[0]);
}

static void add(Device *d, const Ops *o, const Array *a, const size_t *n, int how)
{
	o->add(d, a[0], a[1], a[2], n[0]);
}

static void mean(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->mean(d, a[0], a[1].at, a[2], n[0]);
}

/* how: gradients but one */
static void add_squares(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	Gradients g = { 1 + how, { a[1], a[2] } };
	o->add_squares(d, a[0], g, n[0]);
}

static void clip(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->clip(d, a[0].at, a[1], how);
}

static void count_nonfinite(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	o->count_nonfinite(d, a[0].at, a[1], n[0]);
}

static void relu(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	if (how > 0)
		o->relu_forward(d, a[0], a[1], n[0]);
	else
		o->relu_backward(d, a[0], a[1], a[2], n[0]);
}

static void swiglu(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	if (how > 0)
		o->swiglu_forward(d, a[0], a[1], a[2], n[0]);
	else
		o->swiglu_backward(d, a[0], a[1], a[2], a[3], a[4], n[0]);
}

static void adamw(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->adamw(d, a[0], (Array){ NULL, FP32 }, a[1], a[2], a[3], n[0], a[4].at,
		how ? a[5].at : NULL);
}

// call the operations on rows
static void rmsnorm_forward(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	o->rmsnorm_forward(d, a[0], a[1], a[2], a[3], n[0], n[1], 1e-5);
}

static void rmsnorm_backward(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	o->rmsnorm_backward(d, a[0], a[1], a[2], a[3], a[4], a[5], n[0], n[1]);
}

static void layernorm_forward(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	o->layernorm_forward(d, a[0], a[1], a[2], a[3], a[4], a[5], n[0], n[1], 1e-2);
}

static void layernorm_backward(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	Array shift = how ? a[2] : (Array){ NULL, FP32 };
	o->layernorm_backward(d, a[0], a[1], shift, a[3], a[4], a[5], a[6], a[7],
		n[0], n[1]);
}

// call the operations on tokens and attention
static void embedding(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	if (how < 0)
		o->embedding_forward(d, a[0], a[1], a[2].at, n[0], n[1]);
	else
		o->embedding_backward(d, a[0], how, a[1], a[2].at, n[0], n[1], n[2]);
}

static void rope(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	o->rope(d, a[0], a[1], a[2], a[3], n[0], n[1], n[2], n[3], how);
}

static void softmax(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how)
{
	if (how > 0)
		o->softmax_forward(d, a[0], a[1], 0.7, n[0], n[1]);
	else
		o->softmax_backward(d, a[0], a[1], a[2], 0.7, n[0], n[1]);
}

static void cross_entropy(Device *d, const Ops *o, const Array *a,
	const size_t *n, int how)
{
	if (how > 0)
		o->cross_entropy_forward(d, a[0], a[1], a[2], a[3].at, n[0], n[1]);
	else
		o->cross_entropy_backward(d, a[0], a[1], a[2], a[3].at, 0.5, n[0], n[1]);
}

static const Case cases[] = {

// the rows of elementwise operations
{ "fill", fill, lengths, 3, { OUT(LOW, ALL) } },
{ "draw", draw, lengths, 3, { OUT(LOW, ALL, .relative = 2) } },
{ "draw_rejecting", draw, lengths, 1, { OUT(LOW, ALL, .relative = 2) } },
{ "cast_down", cast, lengths, 0, { OUT(LOW, ALL), IN(HIGH, ALL, SPREAD) } },
{ "cast_up", cast, lengths, 0, { OUT(HIGH, ALL), IN(LOW, ALL, SPREAD) } },
{ "cast_across", cast, lengths, 0, { OUT(OTHER, ALL), IN(LOW, ALL, SPREAD) } },
{ "add", add, lengths, 0, {
	OUT(LOW, ALL), IN(LOW, ALL, SPREAD), IN(LOW, ALL, SPREAD) } },
{ "add_branch", add, lengths, 0, {
	OUT(HIGH, ALL), IN(HIGH, ALL, SPREAD), IN(LOW, ALL, SPREAD) } },
{ "add_in_place", add, lengths, 0, {
	OVER(2), IN(LOW, ALL, SPREAD), UPDATED(LOW, ALL, SPREAD) } },

{ "mean", mean, lengths, 0, {
	OUT(HIGH, 0, .absolute = 16), OUT(INTEGER, 0), IN(HIGH, ALL, SPREAD) } },
{ "add_squares", add_squares, lengths, 0, {
	UPDATED(HIGH, 0, ONE, .relative = 64), IN(LOW, ALL, SPREAD) } },
{ "add_squares_of_two", add_squares, lengths, 1, {
	UPDATED(HIGH, 0, ONE, .relative = 64), IN(LOW, ALL, SPREAD),
	IN(LOW, ALL, SPREAD) } },
{ "clip", clip, lengths, 2, {
	UPDATED(HIGH, 0, ONE, .relative = 8), IN(HIGH, 0, LOGSUM) } },
{ "clip_nothing", clip, lengths, 100, {
	UPDATED(HIGH, 0, ONE), IN(HIGH, 0, ONE) } },
{ "mean_of_nonfinite", mean, lengths, 0, {
	SCRATCH(HIGH, 0), OUT(INTEGER, 0), IN(HIGH, ALL, NONFINITE) } },
{ "count_nonfinite", count_nonfinite, lengths, 0, {
	UPDATED(INTEGER, 0, ONE), IN(LOW, ALL, NONFINITE) } },
{ "count_finite", count_nonfinite, lengths, 0, {
	UPDATED(INTEGER, 0, ONE), IN(LOW, ALL, SPREAD) } },
{ "relu_forward", relu, lengths, 1, { OUT(LOW, ALL), IN(LOW, ALL, SPREAD) } },
{ "relu_forward_in_place", relu, lengths, 1, {
	OVER(1), UPDATED(LOW, ALL, SPREAD) } },
{ "relu_backward", relu, lengths, -1, {
	OUT(LOW, ALL), IN(LOW, ALL, SPREAD), IN(LOW, ALL, SPREAD) } },
{ "relu_backward_in_place", relu, lengths, -1, {
	OVER(1), UPDATED(LOW, ALL, SPREAD), IN(LOW, ALL, SPREAD) } },

// the rows of SwiGLU and AdamW
#define GATED .relative = 64, .absolute = 1
#define UNGATED .relative = 64, .absolute = 48
{ "swiglu_forward", swiglu, lengths, 1, {
	OUT(LOW, ALL, GATED), IN(LOW, ALL, GATE), IN(LOW, ALL, SPREAD) } },
{ "swiglu_forward_in_place", swiglu, lengths, 1, {
	OVER(1), UPDATED(LOW, ALL, GATE, GATED),
	IN(LOW, ALL, SPREAD) } },
{ "swiglu_backward", swiglu, lengths, -1, {
	OUT(LOW, ALL, UNGATED), OUT(LOW, ALL, GATED),
	IN(LOW, ALL, SPREAD), IN(LOW, ALL, GATE), IN(LOW, ALL, SPREAD) } },
{ "swiglu_backward_in_place", swiglu, lengths, -1, {
	OVER(2), OUT(LOW, ALL, GATED),
	UPDATED(LOW, ALL, SPREAD, UNGATED), IN(LOW, ALL, GATE),
	IN(LOW, ALL, SPREAD) } },
#define AVERAGES UPDATED(HIGH, ALL, SPREAD, .absolute = 4), \
	UPDATED(HIGH, ALL, GAIN, .relative = 4), IN(HIGH, 0, STEP, .times = 8)
#define MOMENTS IN(HIGH, ALL, SPREAD), AVERAGES
{ "adamw", adamw, lengths, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), MOMENTS } },
{ "adamw_low_gradient", adamw, lengths, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), IN(LOW, ALL, SPREAD), AVERAGES } },
{ "adamw_not_skipped", adamw, lengths, 1, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 4), MOMENTS,
	IN(INTEGER, 0, ZERO) } },
{ "adamw_skipped", adamw, lengths, 1, {
	UPDATED(HIGH, ALL, SPREAD), IN(HIGH, ALL, SPREAD),
	UPDATED(HIGH, ALL, SPREAD), UPDATED(HIGH, ALL, GAIN),
	IN(HIGH, 0, STEP, .times = 8),
	IN(INTEGER, 0, ONE) } },

// the rows of operations on rows
{ "rmsnorm_forward", rmsnorm_forward, rows, 0, {
	OUT(LOW, ALL, .relative = 4, .over = D1),
	OUT(HIGH, D0, .relative = 3, .over = D1),
	IN(HIGH, ALL, SPREAD), IN(HIGH, D1, GAIN) } },
{ "rmsnorm_backward", rmsnorm_backward, rows, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 64),
	UPDATED(HIGH, D1, SPREAD, .absolute = 8, .over = D0),
	IN(LOW, ALL, SPREAD), IN(HIGH, ALL, SPREAD), IN(HIGH, D1, GAIN),
	IN(HIGH, D0, GAIN) } },
{ "rmsnorm_backward_low_gradient", rmsnorm_backward, rows, 0, {
	UPDATED(HIGH, ALL, SPREAD, .absolute = 64),
	UPDATED(LOW, D1, SPREAD, .absolute = 8, .over = D0),
	IN(LOW, ALL, SPREAD), IN(HIGH, ALL, SPREAD), IN(HIGH, D1, GAIN),
	IN(HIGH, D0, GAIN) } },
#define NORMALISED OUT(LOW, ALL, .relative = 16, .absolute = 256), \
	OUT(HIGH, D0, .absolute = 16), \
	OUT(HIGH, D0, .relative = 24, .over = D1), \
	IN(HIGH, ALL, SPREAD), IN(HIGH, D1, GAIN)
{ "layernorm_forward", layernorm_forward, rows, 0, {
	NORMALISED, IN(HIGH, D1, SPREAD) } },
{ "layernorm_forward_no_shift", layernorm_forward, rows, 0, {
	NORMALISED, NOTHING } },
#define LAYER_GRADIENTS UPDATED(LOW, ALL, SPREAD, .absolute = 256), \
	UPDATED(HIGH, D1, SPREAD, .absolute = 16, .over = D0)
#define LAYER_INPUTS IN(HIGH, ALL, SPREAD), IN(LOW, ALL, SPREAD), \
	IN(HIGH, D1, GAIN), IN(HIGH, D0, SPREAD), IN(HIGH, D0, GAIN)
{ "layernorm_backward", layernorm_backward, rows, 1, {
	LAYER_GRADIENTS, UPDATED(HIGH, D1, SPREAD, .absolute = 8, .over = D0),
	LAYER_INPUTS } },
{ "layernorm_backward_low_gradients", layernorm_backward, rows, 1, {
	UPDATED(LOW, ALL, SPREAD, .absolute = 256),
	UPDATED(LOW, D1, SPREAD, .absolute = 16, .over = D0),
	UPDATED(LOW, D1, SPREAD, .absolute = 8, .over = D0), LAYER_INPUTS } },
{ "layernorm_backward_no_shift", layernorm_backward, rows, 0, {
	LAYER_GRADIENTS, IN(HIGH, D1, SPREAD), LAYER_INPUTS } },

// the rows of operations on tokens and attention
#define LOOKED_UP(WHICH) OUT(LOW, D0 | D1), IN(HIGH, D1 | D2, SPREAD), \
	IN(INTEGER, D0, WHICH)
{ "embedding_forward", embedding, embeddings, -1, { LOOKED_UP(TOKENS) } },
{ "embedding_forward_of_part", embedding, embeddings, -1, {
	LOOKED_UP(SOME_TOKENS) } },
#define ADDED_UP(WHICH) OUT(HIGH, D1 | D2), IN(LOW, D0 | D1, EIGHTHS), \
	IN(INTEGER, D0, WHICH)
{ "embedding_backward", embedding, embeddings, 0, { ADDED_UP(TOKENS) } },
{ "embedding_backward_of_part", embedding, embeddings, 0, {
	ADDED_UP(SOME_TOKENS) } },
{ "embedding_backward_adding", embedding, embeddings, 1, {
	UPDATED(HIGH, D1 | D2, EIGHTHS), IN(LOW, D0 | D1, EIGHTHS),
	IN(INTEGER, D0, TOKENS) } },
{ "embedding_backward_low_gradient", embedding, embeddings, 0, {
	OUT(LOW, D1 | D2), IN(HIGH, D0 | D1, EIGHTHS),
	IN(INTEGER, D0, TOKENS) } },
{ "embedding_backward_low_adding", embedding, embeddings, 1, {
	UPDATED(LOW, D1 | D2, EIGHTHS), IN(LOW, D0 | D1, EIGHTHS),
	IN(INTEGER, D0, TOKENS) } },
#define ANGLES IN(HIGH, D1 | D3, SPREAD), IN(HIGH, D1 | D3, SPREAD)
{ "rope_forward", rope, heads, 1, {
	OUT(LOW, ALL, .absolute = 8), IN(LOW, ALL, SPREAD), ANGLES } },
{ "rope_backward", rope, heads, -1, {
	OUT(LOW, ALL, .absolute = 8), IN(LOW, ALL, SPREAD), ANGLES } },
{ "rope_in_place", rope, heads, 1, { OVER(1),
	UPDATED(LOW, ALL, SPREAD, .absolute = 8), ANGLES } },

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
{ "cross_entropy_forward", cross_entropy, logits, 1, {
	OUT(HIGH, D0, .absolute = 64), OUT(HIGH, D0, .absolute = 64),
	IN(LOW, ALL, WIDE), IN(INTEGER, D0, TOKENS) } },
#define LOGIT_GRADIENT .relative = 96, .absolute = 32
{ "cross_entropy_backward", cross_entropy, logits, -1, {
	OUT(LOW, ALL, LOGIT_GRADIENT), IN(LOW, ALL, WIDE),
	IN(HIGH, D0, LOGSUM), IN(INTEGER, D0, TOKENS) } },
{ "cross_entropy_backward_in_place", cross_entropy, logits, -1, {
	OVER(1), UPDATED(LOW, ALL, WIDE, LOGIT_GRADIENT),
	IN(HIGH, D0, LOGSUM), IN(INTEGER, D0, TOKENS) } },
};

// time events, and launch captured graphs
static void events_measure(void **state)
{
	enum { REPEATS = 20 };
	size_t n = (size_t)1 << 24;
	Array a = array_new(gpu, n, FP32, MEM_TEMPORARY, "filled");
	held[0] = a.at;
	ops_for(gpu)->fill(gpu, a, 1, n);
	double start = device_now_ms(gpu);
	device_stamp(gpu, COMPUTE, 0);
	device_stamp(gpu, COMPUTE, 1);
	for (int i = 0; i < REPEATS; i++)
		ops_for(gpu)->fill(gpu, a, i, n);
	device_stamp(gpu, COMPUTE, 2);
	double work = device_stamped_ms(gpu, 1, 2);
	double all = device_stamped_ms(gpu, 0, 2);
	double clock = device_now_ms(gpu) - start;
	double bound = REPEATS * n * sizeof(float) / 100e12 * 1e3;
	if (!(bound < work && work <= all && all <= clock))
		fail_msg("%g ms of work, %g ms with an empty phase, %g ms by the "
			"clock; at least %g ms were expected", work, all, clock, bound);
}

typedef struct SumOperands { Array x, y, z; size_t n; } SumOperands;

static void queue_sum(void *arg)
{
	const SumOperands *s = arg;
	ops_for(gpu)->fill(gpu, s->y, 2, s->n);
	ops_for(gpu)->add(gpu, s->z, s->x, s->y, s->n);
	ops_for(gpu)->add(gpu, s->z, s->z, s->x, s->n);
}

static Array summand(int i, size_t n)
{
	Array a = array_new(gpu, n, FP32, MEM_TEMPORARY, "summand");
	held[i] = a.at;
	return a;
}

static void expect_all(Array a, size_t n, real value)
{
	Array got = poisoned(n);
	array_read(gpu, got.at, a, n);
	for (size_t i = 0; i < n; i++)
		if (!(reals(got)[i] == value))
			fail_msg("element %zu is %g, not %g", i, (double)reals(got)[i],
				(double)value);
}

static void recorded_work_repeats(void **state)
{
	enum { LENGTH = 1030 };
	SumOperands s = { summand(0, LENGTH), summand(1, LENGTH), summand(2, LENGTH),
		LENGTH };
	queue_sum(&s);                      /* all code is loaded now */
	ops_for(gpu)->fill(gpu, s.z, -1, LENGTH);
	int kernels = 0;
	void *graph = device_graph_capture(gpu, queue_sum, &s, &kernels);
	assert_non_null(graph);
	assert_int_equal(kernels, 3);
	expect_all(s.z, LENGTH, -1);
	for (int x = 1; x <= 2; x++) {
		ops_for(gpu)->fill(gpu, s.x, x, LENGTH);
		device_graph_launch(gpu, graph);
		expect_all(s.z, LENGTH, 2 + 2 * x);
	}
	device_graph_destroy(gpu, &graph);
	assert_null(graph);
}

int main(void)
{
	enum { NCASES = sizeof cases / sizeof *cases };
	struct CMUnitTest tests[NCASES + 2] = {
		[NCASES] = on_gpu(events_measure),
		on_gpu(recorded_work_repeats),
	};
	list_cases(tests, cases, NCASES);
	return cmocka_run_group_tests(tests, open_both, close_both);
}
