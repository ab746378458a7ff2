/* the whole model: gradients, invariances, memory; links the f64 build */
#include "tests/ops/on_cpu.h"

#include <omp.h>

#include "model/model.h"
#include "tests/base/difference.h"

/*                           vocab context d_model d_ff layers heads theta */
static const Shape tiny = { 13,   8,      18,     22,  2,     3,    6, 10000 };

// make a model whose every weight matters
static Model *rough_under(const Policy *policy, const Shape *shape)
{
	Model *m = model_new(device, shape, policy, 5);
	size_t at = 0;
	for (int i = 0; i < shape_nparameters(shape); i++)
		for (size_t j = 0; j < m->params[i].about.count; j++, at++)
			reals(model_weight(m, i))[j] += (real)(0.3
				* random_truncated(5, 100, at, 3));
	round_array(policy->parameter, m->weights.at, m->extent);
	return m;
}

static Model *rough_model(const Shape *shape)
{
	return rough_under(&policies[POLICY_FP32], shape);
}

// draw a batch
typedef struct DrawnBatch {
	size_t B, T;
	int32_t *tokens, *targets;
} DrawnBatch;

static DrawnBatch batch(size_t B, size_t T, int stream)
{
	size_t V = tiny.vocab;
	return (DrawnBatch){ B, T, drawn_tokens(B * T, stream, V),
		drawn_tokens(B * T, stream + 1, V) };
}

static double forward(Model *m, const DrawnBatch *b, bool keep)
{
	return model_forward(m, b->tokens, b->targets, b->B, b->T, keep);
}

/* a copy of the gradients that a forward and a backward pass leave */
static Array gradients(Model *m, const DrawnBatch *b, bool accumulate)
{
	forward(m, b, true);
	model_backward(m, accumulate);
	return copied(m->gradients, m->extent);
}

// test the gradient of every tensor
typedef struct Loss {
	Model *m;
	const DrawnBatch *b;
} Loss;

static double loss_of(void *context)
{
	Loss *l = context;
	return forward(l->m, l->b, false);
}

static Expected loss_difference(Model *m, const DrawnBatch *b, size_t at)
{
	Loss l = { m, b };
	return (Expected){ slope_at(loss_of, &l, reals(m->weights) + at, 0x1p-10),
		0x1p-30 };
}

static void check_tensor(Model *m, const DrawnBatch *b, int tensor,
	Array gradient)
{
	enum { SAMPLES = 5 };
	Parameter p = shape_parameter(&m->shape, tensor);
	Expected *want = expected(p.count);
	for (size_t i = 0; i < p.count; i++)
		want[i] = (Expected){ 0, INFINITY };       /* anything but NaN */
	for (int s = 0; s < SAMPLES; s++) {
		size_t i = random_bits(6, tensor, s) % p.count;
		if (tensor == 0 && s == 0)
			i = b->tokens[0] * p.columns + i % p.columns;
		want[i] = loss_difference(m, b, p.offset + i);
	}
	expect_close(p.name, array_at(gradient, p.offset), want, p.count);
}

static void gradients_are_differences(void **state)
{
	Model *m = rough_model(&tiny);
	static const size_t sizes[][2] = { { 1, 1 }, { 3, 1 }, { 1, 7 }, { 3, 7 } };
	for (int i = 0; i < 4; i++) {
		DrawnBatch b = batch(sizes[i][0], sizes[i][1], 1);
		if (m->gradients.at)
			memset(m->gradients.at, 0xff, m->extent * sizeof(real));
		Array gradient = gradients(m, &b, false);
		for (int tensor = 0; tensor < shape_nparameters(&tiny); tensor++)
			check_tensor(m, &b, tensor, gradient);
	}
	model_free(&m);
}

// test that gradients accumulate on demand
static void expect_sum(const char *what, Array got, Array a, Array b, size_t n)
{
	Expected *want = expected(n);
	for (size_t i = 0; i < n; i++)
		want[i] = (Expected){ reals(a)[i] + reals(b)[i], 0x1p-40 };
	expect_close(what, got, want, n);
}

static void gradients_accumulate(void **state)
{
	Model *m = rough_model(&tiny);
	DrawnBatch one = batch(3, 7, 1), two = batch(2, 5, 3);
	Array first = gradients(m, &one, true);
	Array second = gradients(m, &two, false);
	Array again = gradients(m, &one, false);
	Array both = gradients(m, &two, true);
	expect_same("the first, though accumulated", first, again, m->extent);
	expect_sum("two batches", both, first, second, m->extent);
	gradients(m, &one, false);
	Array twice = gradients(m, &one, true);
	expect_sum("one batch twice", twice, first, first, m->extent);
	model_free(&m);
}

// test that a batch is the mean of its sequences
static void a_batch_is_the_mean(void **state)
{
	enum { SEQUENCES = 3, LENGTH = 7 };
	Model *m = rough_model(&tiny);
	DrawnBatch all = batch(SEQUENCES, LENGTH, 1);
	double loss = forward(m, &all, true), mean = 0;
	Array together = gradients(m, &all, false), sum = { 0 };
	for (int i = 0; i < SEQUENCES; i++) {
		size_t start = i * LENGTH;
		DrawnBatch b = { 1, LENGTH, all.tokens + start, all.targets + start };
		mean += forward(m, &b, false) / SEQUENCES;
		sum = gradients(m, &b, i > 0);
	}
	assert_true(fabs(loss - mean) <= 0x1p-40);
	Expected *want = expected(m->extent);
	for (size_t i = 0; i < m->extent; i++)
		want[i] = (Expected){ reals(sum)[i] / SEQUENCES, 0x1p-40 };
	expect_close("gradient of a batch", together, want, m->extent);
	model_free(&m);
}

// test that no position sees a later one
static void change_token(Model *m, const DrawnBatch *b, size_t at, Array logits)
{
	size_t V = tiny.vocab, start = at / b->T * b->T, end = start + b->T;
	int32_t kept = b->tokens[at];
	b->tokens[at] = (kept + 1) % (int32_t)V;
	forward(m, b, false);
	b->tokens[at] = kept;
	expect_same("logits before the change", m->logits, logits, at * V);
	expect_same("logits of later sequences", array_at(m->logits, end * V),
		array_at(logits, end * V), (b->B * b->T - end) * V);
	assert_memory_not_equal(reals(m->logits) + at * V,
		reals(logits) + at * V, V * sizeof(real));
	assert_memory_not_equal(reals(m->logits) + (end - 1) * V,
		reals(logits) + (end - 1) * V, V * sizeof(real));
}

static void no_position_sees_a_later_one(void **state)
{
	Model *m = rough_model(&tiny);
	DrawnBatch b = batch(3, 7, 1);
	size_t N = b.B * b.T, n = N * tiny.vocab;
	forward(m, &b, true);
	Array logits = copied(m->logits, n);
	forward(m, &b, false);
	expect_same("logits without keeping", m->logits, logits, n);
	for (size_t at = 0; at < N; at++)
		change_token(m, &b, at, logits);
	model_free(&m);
}

// test the bytes of saved activations
static size_t padded(size_t elements)
{
	return (elements * sizeof(real) + 63) / 64 * 64;
}

typedef enum { EAGER, NAIVE, FLASH } PathKind;

static size_t saved_bytes(long layers, const DrawnBatch *b, bool keep,
	PathKind path)
{
	Shape shape = tiny;
	shape.layers = layers;
	size_t before = device->total;
	Model *m = model_new(device, &shape, &policies[POLICY_FP32], 1);
	if (path != EAGER)
		model_fuse(m);
	m->flash = path == FLASH;
	size_t angles = tiny.context * tiny.d_model / tiny.heads / 2;
	size_t held = before + padded(m->extent) + 2 * padded(angles)
		+ 2 * padded(1)                          /* the loss, and its flag */
		+ 2 * ((b->B * b->T * sizeof(int32_t) + 63) & ~(size_t)63);
	forward(m, b, keep);
	size_t saved = device->total - held;
	assert_int_equal(device->active[MEM_TEMPORARY], 0);
	model_clear(m);
	assert_int_equal(device->total, held);
	if (keep) {
		gradients(m, b, false);
		assert_int_equal(device->total, held + padded(m->extent));
	}
	model_free(&m);
	assert_int_equal(device->total, before);
	return saved;
}

static void activations_are_as_derived(void **state)
{
	size_t C = tiny.d_model, F = tiny.d_ff, H = tiny.heads;
	static const size_t sizes[][2] = { { 2, 8 }, { 3, 7 }, { 1, 1 } };
	for (int i = 0; i < 9; i++) {
		size_t B = sizes[i / 3][0], T = sizes[i / 3][1], N = B * T;
		PathKind path = i % 3;
		DrawnBatch b = batch(B, T, 1);
		size_t block = saved_bytes(3, &b, true, path)
			- saved_bytes(2, &b, true, path);
		size_t weights = path == FLASH ? H : H * T;
		assert_int_equal(block, padded(N * weights) + 2 * padded(N)
			+ (path == EAGER ? 8 * padded(N * C) + 3 * padded(N * F)
			: 3 * padded(N * C) + padded(3 * N * C) + padded(2 * N * F)));
		if (N % 16 == 0)
			assert_int_equal(block, sizeof(real) * N * (weights + 2
				+ (path == EAGER ? 8 * C + 3 * F : 6 * C + 2 * F)));
		assert_int_equal(saved_bytes(3, &b, false, path),
			saved_bytes(2, &b, false, path));
	}
}

// test the peak of memory
static void peak_is_as_derived(void **state)
{
	const Shape shape = { 100, 32, 48, 192, 4, 4, 12, 10000 };
	enum { SEQUENCES = 2 };
	size_t C = shape.d_model, F = shape.d_ff, H = shape.heads;
	size_t T = shape.context, N = SEQUENCES * T, V = shape.vocab;
	size_t before = device->total;
	Model *m = model_new(device, &shape, &policies[POLICY_FP32], 1);
	DrawnBatch b = batch(SEQUENCES, T, 1);
	gradients(m, &b, false);
	device_reset_peak(device);
	gradients(m, &b, false);
	size_t block = 8 * C + H * T + 3 * F + 2, ends = 2 * C + V + 3;
	double derived = sizeof(real)
		* (2.0 * m->count + N * (shape.layers * block + ends));
	double ratio = (device->total_peak - before) / derived;
	model_free(&m);
	if (!(ratio >= 1 && ratio <= 8.0 / 7))
		fail_msg("the peak is %.3f of the derived size", ratio);
}

// compare the two paths of the model
static double distance(Array a, Array b, size_t n)
{
	double square = 0, norm = 0;
	for (size_t i = 0; i < n; i++) {
		double d = reals(a)[i] - reals(b)[i];
		square += d * d, norm += reals(b)[i] * reals(b)[i];
	}
	return sqrt(square / norm);
}

static void paths_agree(void **state)
{
	static const double bounds[] = { 1e-13, 0.05, 0.01, 0.01, 0.05, 0.05, 0.5 };
	static const size_t sizes[][2] = { { 2, 8 }, { 3, 7 }, { 1, 1 } };
	for (int i = 0; i < 6 * NPOLICIES; i++) {
		const Policy *policy = &policies[i / 3 % NPOLICIES];
		Model *eager = model_new(device, &tiny, policy, 5);
		Model *fused = model_new(device, &tiny, policy, 5);
		model_fuse(fused);
		assert_true(fused->flash);
		fused->flash = i < 3 * NPOLICIES;
		DrawnBatch b = batch(sizes[i % 3][0], sizes[i % 3][1], i);
		size_t n = b.B * b.T * tiny.vocab;
		double bound = bounds[i / 3 % NPOLICIES],
			loss = forward(eager, &b, false);
		assert_true(fabs(forward(fused, &b, false) - loss) <= bound * loss);
		assert_true(distance(fused->logits, eager->logits, n) <= bound);
		for (int again = 0; again < 2; again++) {
			Array want = gradients(eager, &b, again);
			Array got = gradients(fused, &b, again);
			double d = distance(got, want, eager->extent);
			if (!(d <= bound))
				fail_msg("%s, %s: gradients differ by %.2g", policy->name,
					fused->flash ? "FlashAttention" : "naive", d);
		}
		model_free(&fused);
		model_free(&eager);
	}
}

static void expect_chunks(Model *m, size_t chunk, const DrawnBatch *b,
	double bound)
{
	model_follow(m, &(ModelPlan){ 0 });
	double loss = forward(m, b, false);
	Array want[2] = { gradients(m, b, false) };
	want[1] = gradients(m, b, true);
	model_follow(m, &(ModelPlan){ .head_chunk = chunk });
	memset(m->gradients.at, 0xff, m->extent * sizeof(real));
	assert_true(fabs(forward(m, b, false) - loss) <= bound * loss);
	assert_null(m->logits.at);
	for (int again = 0; again < 2; again++) {
		Array got = gradients(m, b, again);
		assert_true(fabs(model_loss(m) - loss) <= bound * loss);
		for (int i = 0; i < shape_nparameters(&m->shape); i++) {
			Parameter p = shape_parameter(&m->shape, i);
			double d = distance(array_at(got, p.offset),
				array_at(want[again], p.offset), p.count);
			if (!(d <= bound))
				fail_msg("%s, %s, chunks of %zu: %s is off by %.2g",
					m->policy->name, fusion_names[m->fused], chunk, p.name, d);
		}
	}
}

static void a_head_in_chunks_is_the_whole_head(void **state)
{
	static const size_t chunks[] = { 1, 2, 5, 8, 20, 21, 22, 1000 };
	static const double bounds[] = { 1e-13, 1e-2, 1e-2, 1e-13, 1e-2, 1e-2, 1e-1 };
	for (size_t i = 0; i < 8 * 2 * NPOLICIES; i++) {
		Model *m = rough_under(&policies[i / 16], &tiny);
		if (i % 2)
			model_fuse(m);
		DrawnBatch b = batch(3, 7, 1);
		m->share = 0.25;
		expect_chunks(m, chunks[i / 2 % 8], &b, bounds[i / 16]);
		model_load(m, b.tokens, NULL, b.B, b.T);
		model_run(m, false);
		assert_non_null(m->logits.at);
		model_free(&m);
	}
}

/* of the gradients, from those of the same weights in fp32 */
static double error_under(int policy, bool fused, const DrawnBatch *b)
{
	Model *m = rough_under(&policies[policy], &tiny),
		*exact = model_new(device, &tiny, &policies[POLICY_FP32], 5);
	m->ops->cast(device, exact->weights, m->weights, m->extent);
	if (fused)
		model_fuse(m);
	double loss = forward(exact, b, true);
	assert_true(fabs(forward(m, b, true) - loss) <= 0.01 * loss);
	assert_int_equal(m->activations[0].x.type, policies[policy]
		.op[OP_RESIDUAL].output);
	double d = distance(gradients(m, b, false), gradients(exact, b, false),
		m->extent);
	model_free(&m);
	model_free(&exact);
	return d;
}

static void a_stream_in_bf16_is_about_as_exact(void **state)
{
	DrawnBatch b = batch(3, 7, 1);
	for (int i = 0; i < 4; i++) {
		int policy = i / 2 ? POLICY_BF16_STATE : POLICY_BF16_STREAM;
		double usual = error_under(POLICY_BF16, i % 2, &b),
			d = error_under(policy, i % 2, &b);
		if (!(d > usual / 4 && d < 3 * usual))
			fail_msg("%s, %s: gradients are off by %.2g, under bf16 by %.2g",
				policies[policy].name, fusion_names[i % 2], d, usual);
	}
}

static void what_blocks_drop_is_made_again(void **state)
{
	const Shape deep = { 50, 8, 16, 24, 4, 2, 8, 10000 };
	static const int drops[][3] = { { 1, 0, 0 }, { 0, 1, 2 }, { 2, 3, 1 },
		{ 4, 2, 0 }, { 4, 4, 4 }, { 0, 0, 3 } };
	for (int i = 0; i < 2 * NPOLICIES * 6; i++) {
		Model *m = rough_under(&policies[i / 12], &deep);
		DrawnBatch b = batch(2, 8, 1);
		model_fuse(m);
		m->flash = i % 2;
		const int *d = drops[i / 2 % 6], codes = m->fp8 ? d[2] : 0;
		Array want = gradients(m, &b, false);
		forward(m, &b, true);
		size_t saved = device->total;
		model_follow(m, &(ModelPlan){ .drop_gate_up = d[0], .drop_qkv = d[1],
			.drop_codes = codes });
		forward(m, &b, true);
		/* with gate and up, or with the codes, goes SwiGLU's result in FP8 */
		size_t result = m->fp8 ? padded(16 * 24) + padded(1) : 0,
			read = 3 * (padded(16 * 16) + padded(1));
		assert_int_equal(saved - device->total, d[0] * padded(2 * 16 * 24)
			+ (d[0] > codes ? d[0] : codes) * result
			+ d[1] * padded(3 * 16 * 16) + codes * read);
		memset(m->gradients.at, 0xff, m->extent * sizeof(real));
		Array got = gradients(m, &b, false);
		for (int k = 0; k < shape_nparameters(&deep); k++) {
			Parameter p = shape_parameter(&deep, k);
			expect_same(p.name, array_at(got, p.offset), array_at(want, p.offset),
				p.count);
		}
		model_free(&m);
		assert_int_equal(release(NULL), 0);
	}
}

static void scores_can_be_made_again(void **state)
{
	Model *m = model_new(device, &tiny, &policies[POLICY_FP32], 5);
	model_fuse(m);
	m->flash = false;
	DrawnBatch b = batch(2, 8, 1);
	Array want = gradients(m, &b, false);
	forward(m, &b, true);
	size_t full = device->total, square = padded(16 * 8 * tiny.heads);
	model_follow(m, &(ModelPlan){ .drop_scores = true });
	forward(m, &b, true);
	assert_int_equal(device->total, full - tiny.layers * square);
	model_backward(m, false);
	expect_same("gradients", m->gradients, want, m->extent);
	model_free(&m);
}

// test that blocks can be run again
static void blocks_can_be_run_again(void **state)
{
	const Shape deep = { 50, 8, 16, 24, 7, 2, 8, 10000 };
	DrawnBatch b = batch(2, 8, 1);
	for (int i = 0; i < 3 * NPOLICIES; i++)
		for (int K = 1; K <= deep.layers; K++) {
			Model *m = model_new(device, &deep, &policies[i / 3], 5);
			if (i % 3 > 0)
				model_fuse(m);
			m->flash = i % 3 > 1;
			Array want = gradients(m, &b, false);
			device_reset_peak(device);
			gradients(m, &b, false);
			size_t peak = device->total_peak;
			for (int nested = 0; nested < 2; nested++) {
				model_recompute(m, K, nested);
				device_reset_peak(device);
				Array got = gradients(m, &b, false);
				expect_same("gradients", got, want, m->extent);
				assert_true(K == deep.layers || device->total_peak < peak);
			}
			model_free(&m);
			assert_int_equal(release(NULL), 0);
			b = batch(2, 8, 1);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(blocks_can_be_run_again),
		checked(gradients_are_differences), checked(gradients_accumulate),
		checked(a_batch_is_the_mean), checked(no_position_sees_a_later_one),
		checked(activations_are_as_derived), checked(peak_is_as_derived),
		checked(paths_agree), checked(a_head_in_chunks_is_the_whole_head),
		checked(a_stream_in_bf16_is_about_as_exact),
		checked(what_blocks_drop_is_made_again),
		checked(scores_can_be_made_again),
	};
	omp_set_num_threads(1);         /* tiny loops */
	return run_on_cpu(tests);
}
