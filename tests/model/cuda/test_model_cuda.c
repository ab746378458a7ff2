/* models on the GPU: against the CPU, and against themselves */
#include "tests/ops/cuda/both.h"

#include "train/step.h"
#include "cases/text.h"
#include "estimate/memory_estimate.h"
#include "model/sizes.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/hopper.h"
#include "ops/dry.h"

// take the loss, logits and gradients of a model
typedef struct Answer {
	double loss;
	real *logits, *gradients;
} Answer;

static Answer answer_of(Device *device, const Shape *shape,
	const Policy *policy, bool fused, const Batch *b)
{
	size_t before = device->total, n = b->B * b->T * shape->vocab;
	Model *m = model_new(device, shape, policy, 3);
	if (fused)
		model_fuse(m);
	Answer a = { model_forward(m, b->tokens, b->targets, b->B, b->T, false),
		reals(poisoned(n)), reals(poisoned(m->extent)) };
	array_read(device, a.logits, m->logits, n);
	model_forward(m, b->tokens, b->targets, b->B, b->T, true);
	model_backward(m, false);
	array_read(device, a.gradients, m->gradients, m->extent);
	model_free(&m);
	size_t kept = 64 << 20;                 /* workspaces of the library */
	if (device->total > before + kept)
		fail_msg("%zu bytes are left after a model", device->total - before);
	return a;
}

static double distance(const real *a, const real *b, size_t n)
{
	double square = 0, norm = 0;
	for (size_t i = 0; i < n; i++) {
		square += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
		norm += (double)b[i] * b[i];
	}
	return sqrt(square / norm);
}

// compare models on both devices
static void models_agree(void **state)
{
	static const size_t batches[][2] = { { 1, 1 }, { 3, 17 }, { 1, 1000 } };
	/* heads of 12 elements, and of 16, which FlashAttention takes */
	static const Shape odd = { 101, 1000, 36, 50, 2, 3, 12, 10000 },
		even = { 101, 1000, 48, 50, 2, 3, 16, 10000 };
	for (int i = 0; i < 3 * NAUTOCAST * 3; i++) {
		const Policy *policy = &policies[i % NAUTOCAST];
		bool fused = i / NAUTOCAST % 3 > 0;
		const Shape *shape = i / NAUTOCAST % 3 > 1 ? &even : &odd;
		const size_t *size = batches[i / NAUTOCAST / 3];
		double bound = policy->op[OP_LINEAR].input == FP32 ? 1e-4 : 2e-2;
		Batch b = batch_random(size[0], size[1], shape->vocab, i);
		Answer want = answer_of(cpu, shape, policy, fused, &b);
		Answer got = answer_of(gpu, shape, policy, fused, &b);
		double loss = fabs(got.loss - want.loss) / want.loss;
		double logits = distance(got.logits, want.logits,
			size[0] * size[1] * shape->vocab);
		double gradients = distance(got.gradients, want.gradients,
			shape_extent(shape));
		if (!(loss < bound / 10 && logits < bound && gradients < bound))
			fail_msg("%s, %s, width %ld, batch %zu of %zu tokens: loss %.2g, "
				"logits %.2g, gradients %.2g", policy->name,
				fusion_names[fused], (long)shape->d_model, size[0], size[1],
				loss, logits, gradients);
		batch_free(&b);
		release(NULL);
	}
}

// compare gradients in bf16 with those in fp32
static const Shape narrow = { 1000, 64, 128, 344, 3, 2, 64, 10000 };

static void add_gradients(Device *device, bool fused, bool rounds, real *to[2])
{
	Batch b = batch_random(3, 40, narrow.vocab, 1);
	Model *m = model_new(device, &narrow, &policies[POLICY_BF16], 3);
	if (fused)
		model_fuse(m);
	if (rounds)
		model_set_gradient_type(m, BF16);
	size_t nbytes = m->extent * (rounds ? 2 : 4);
	MemoryEstimate e = memory_estimate(m, b.B, b.T, true);
	for (int pass = 0; pass < 2; pass++) {
		model_forward(m, b.tokens, b.targets, b.B, b.T, true);
		model_backward(m, pass > 0);
		to[pass] = reals(poisoned(m->extent));
		array_read(device, to[pass], m->gradients, m->extent);
	}
	if (e.category[MEM_GRADIENT] != (double)device->active[MEM_GRADIENT]
		|| device->active[MEM_GRADIENT] < nbytes
		|| device->active[MEM_GRADIENT] >= nbytes + 4096)
		fail_msg("gradients take %zu bytes, derived %g, not %zu",
			device->active[MEM_GRADIENT], e.category[MEM_GRADIENT], nbytes);
	model_free(&m);
	batch_free(&b);
}

static void bf16_gradients_are_near(void **state)
{
	for (int fused = 0; fused < 2; fused++) {
		real *wide[2], *low[2];
		add_gradients(gpu, fused, false, wide);
		add_gradients(gpu, fused, true, low);
		for (int pass = 0; pass < 2; pass++) {
			double apart = distance(low[pass], wide[pass],
				shape_count(&narrow));
			if (!(apart > 0 && apart < 0x1p-9 * (pass + 1)))
				fail_msg("%s, pass %d: bf16 gradients are %.2g apart",
					fusion_names[fused], pass + 1, apart);
		}
		release(NULL);
	}
}

// compare heads in chunks with the whole head
static Answer chunked_answer(Device *device, const Policy *policy, bool fused,
	const Batch *b, size_t chunk)
{
	Answer a = { 0 };
	Model *m = model_new(device, &narrow, policy, 3);
	if (fused)
		model_fuse(m);
	model_follow(m, &(ModelPlan){ .head_chunk = chunk });
	for (int pass = 0; pass < 2; pass++) {
		a.loss = model_forward(m, b->tokens, b->targets, b->B, b->T, true);
		model_backward(m, pass > 0);
	}
	a.gradients = reals(poisoned(m->extent));
	array_read(device, a.gradients, m->gradients, m->extent);
	model_free(&m);
	return a;
}

static void heads_in_chunks_agree(void **state)
{
	static const size_t chunks[] = { 1, 8, 37, 64, 119, 4096 };
	for (int i = 0; i < NPOLICIES * 2 * 6; i++) {
		const Policy *policy = &policies[i / 12];
		bool fused = i / 6 % 2;
		double bound = policy->fp8 ? 0.1 : policy->op[OP_LINEAR].input == FP32
			? 1e-4 : 2e-2;
		Batch b = batch_random(3, 40, narrow.vocab, i);
		Answer want = chunked_answer(cpu, policy, fused, &b, 0),
			got = chunked_answer(gpu, policy, fused, &b, chunks[i % 6]);
		double loss = fabs(got.loss - want.loss) / want.loss, apart
			= distance(got.gradients, want.gradients, shape_count(&narrow));
		if (!(loss < bound / 10 && apart < bound))
			fail_msg("%s, %s, chunks of %zu tokens: loss %.2g, gradients %.2g",
				policy->name, fusion_names[fused], chunks[i % 6], loss, apart);
		batch_free(&b);
		release(NULL);
	}
}

// test that spare multiprocessors change rounding alone
static double last_loss(int spare_sms, real **gradients)
{
	Batch b = batch_random(16, narrow.context, narrow.vocab, 1);
	Model *m = model_new(gpu, &narrow, &policies[POLICY_BF16], 3);
	double loss = 0;
	model_fuse(m);
	m->hooks.spare_sms = spare_sms;
	Optimizer adamw = adamw_new(m, 1e-4, 0.9, 0.999, 1e-8, 0.01);
	for (int step = 0; step < 10; step++) {
		loss = timed_step(m, &adamw, &b, MODE_TRAIN).loss;
		if (step > 0)
			continue;
		*gradients = reals(poisoned(m->extent));
		array_read(gpu, *gradients, m->gradients, m->extent);
	}
	optimizer_free(&adamw);
	model_free(&m);
	batch_free(&b);
	return loss;
}

static void spare_sms_change_rounding_alone(void **state)
{
	static const int spares[] = { 1, 8, 24, 100 };
	real *whole, *spared;
	double loss = last_loss(0, &whole);
	assert_true(loss < log((double)narrow.vocab));
	for (int i = 0; i < 4; i++) {
		double other = last_loss(spares[i], &spared);
		double apart = distance(spared, whole, shape_count(&narrow));
		if (!(apart < 0x1p-7 && fabs(other - loss) < 0x1p-7 * loss))
			fail_msg("%d spare: gradients are %.2g apart, losses %g and %g",
				spares[i], apart, other, loss);
	}
	release(NULL);
}

// train twice, recorded or not
enum { STEPS = 6 };

typedef struct CurveRun {
	double loss[STEPS];
	real *weights[STEPS];
} CurveRun;

static CurveRun run_of(const Shape *shape, const Policy *policy, bool fused,
	bool replayed, bool rounds)
{
	CurveRun run;
	Model *m = model_new(gpu, shape, policy, 3);
	if (fused)
		model_fuse(m);
	if (rounds)
		model_set_gradient_type(m, BF16);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Replay replay = { 0 };
	for (int step = 0; step < STEPS; step++) {
		Batch b = batch_random(3, 40, shape->vocab, step);
		StepTime t = replayed ? replayed_step(&replay, m, &adamw, &b, MODE_TRAIN)
			: timed_step(m, &adamw, &b, MODE_TRAIN);
		run.loss[step] = t.loss;
		run.weights[step] = reals(poisoned(m->extent));
		array_read(gpu, run.weights[step], m->weights, m->extent);
		batch_free(&b);
	}
	replay_free(&replay, gpu);
	optimizer_free(&adamw);
	model_free(&m);
	return run;
}

static void training_repeats(void **state)
{
	for (int i = 0; i < 2 * NPOLICIES + 2; i++) {
		bool fused = i % 2, rounds = i >= 2 * NPOLICIES;
		const Policy *policy = &policies[rounds ? POLICY_BF16 : i / 2];
		CurveRun one = run_of(&narrow, policy, fused, false, rounds);
		CurveRun two = run_of(&narrow, policy, fused, fused, rounds);
		for (int step = 0; step < STEPS; step++)
			if (one.loss[step] != two.loss[step] || memcmp(one.weights[step],
				two.weights[step], shape_count(&narrow) * sizeof(real)))
				fail_msg("%s, %s: step %d of two runs differs", policy->name,
					fusion_names[fused], step + 1);
		release(NULL);
	}
}

// drop tensors and run blocks again
static real *gradients_of(Model *m, const Batch *b)
{
	real *gradients = reals(poisoned(m->extent));
	model_forward(m, b->tokens, b->targets, b->B, b->T, true);
	model_backward(m, false);
	array_read(gpu, gradients, m->gradients, m->extent);
	return gradients;
}

static void plans_change_no_bit(void **state)
{
	static const ModelPlan plans[] = { { 0, 3, 3 }, { 50, 1, 2 } };
	Batch b = batch_random(3, 40, narrow.vocab, 1);
	for (int i = 0; i < NPOLICIES * 2 * 2; i++) {
		Model *m = model_new(gpu, &narrow, &policies[i / 4], 3);
		real *got[2];
		model_fuse(m);
		model_set_attention(m, i % 2);
		for (int drops = 0; drops < 2; drops++) {
			ModelPlan plan = { .head_chunk = plans[i / 2 % 2].head_chunk };
			model_follow(m, drops ? &plans[i / 2 % 2] : &plan);
			got[drops] = gradients_of(m, &b);
		}
		if (memcmp(got[0], got[1], shape_count(&narrow) * sizeof(real)))
			fail_msg("%s, %s: gradients differ where tensors are dropped",
				m->policy->name, i % 2 ? "flash" : "naive");
		model_free(&m);
		release(NULL);
	}
	batch_free(&b);
}

static void blocks_run_again_with_equal_bits(void **state)
{
	Batch b = batch_random(3, 40, narrow.vocab, 1);
	for (int i = 0; i < NPOLICIES; i++) {
		Model *m = model_new(gpu, &narrow, &policies[i], 3);
		real *got[3];
		model_fuse(m);
		for (int K = 0; K < 3; K++) {
			model_recompute(m, K, false);
			got[K] = gradients_of(m, &b);
			if (memcmp(got[0], got[K], shape_count(&narrow) * sizeof(real)))
				fail_msg("%s, K = %d: gradients differ", m->policy->name, K);
		}
		model_free(&m);
		release(NULL);
	}
	batch_free(&b);
}

// follow the learning curve of the CPU
enum { CURVE = 50, SEQUENCES = 8, LENGTH = 128 };

static void learn(Device *device, bool fused, const Text *text, double *loss)
{
	static const Shape shape = { 256, LENGTH, 128, 384, 4, 4, 32, 10000 };
	Model *m = model_new(device, &shape, &policies[POLICY_FP32], 1);
	if (fused)
		model_fuse(m);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.95, 1e-8, 0.1);
	Batch b = batch_random(SEQUENCES, LENGTH, shape.vocab, 1);
	for (int step = 0; step < CURVE; step++) {
		text_windows(text, 0, text->ntrain, 1, step, b.B, b.T, b.tokens,
			b.targets);
		loss[step] = timed_step(m, &adamw, &b, MODE_TRAIN).loss;
	}
	batch_free(&b);
	optimizer_free(&adamw);
	model_free(&m);
}

static void curves_coincide(void **state)
{
	double want[CURVE], got[CURVE];
	Text text = text_read("writeup.nw", 1 << 16);
	learn(cpu, false, &text, want);
	assert_true(want[CURVE - 1] < want[0] - 1);     /* it has learned */
	for (int fused = 0; fused < 2; fused++) {
		learn(gpu, fused, &text, got);
		for (int step = 0; step < CURVE; step++)
			if (!(fabs(got[step] - want[step]) < 1e-3))
				fail_msg("%s: after %d steps the loss is %.6f, on the CPU %.6f",
					fusion_names[fused], step, got[step], want[step]);
	}
	text_free(&text);
}

// expect every matmul of every size in the library
static void train_one_step(const Shape *shape, const Policy *policy, bool fused,
	bool rounds, size_t chunk)
{
	Model *m = model_new(gpu, shape, policy, 3);
	if (fused)
		model_fuse(m);
	model_follow(m, &(ModelPlan){ .head_chunk = chunk });
	if (rounds)
		model_set_gradient_type(m, BF16);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	Batch b = batch_random(4, shape->context, shape->vocab, 1);
	timed_step(m, &adamw, &b, MODE_TRAIN);
	batch_free(&b);
	optimizer_free(&adamw);
	model_free(&m);
}

static void library_takes_all_matmuls(void **state)
{
	for (int i = 0; i < NSIZES * NPOLICIES * 2; i++) {
		const NamedShape *size = &model_sizes[i / 2 / NPOLICIES];
		const Policy *policy = &policies[i / 2 % NPOLICIES];
		bool fused = i % 2;
		Shape block = size->shape;
		block.layers = 1;
		size_t before = cuda_matmul_fallbacks(gpu);
		train_one_step(&block, policy, fused, false, 0);
		train_one_step(&block, policy, fused, false, 192);
		if (policy == &policies[POLICY_BF16])
			train_one_step(&block, policy, fused, true, 0);
		size_t refused = cuda_matmul_fallbacks(gpu) - before;
		if (refused > 0)
			fail_msg("%s, %s, %s: the library refuses %zu matmuls", size->name,
				policy->name, fusion_names[fused], refused);
	}
}

// hold a dry GPU to this one
static void expect_as_dry(int policy, bool fused)
{
	const Shape shape = { 1000, 64, 256, 704, 3, 4, 64, 10000 };
	Model *m = model_new(gpu, &shape, &policies[policy], 3);
	if (fused)
		model_fuse(m);
	Batch b = batch_random(8, 64, shape.vocab, 1);
	timed_step(m, NULL, &b, MODE_FORWARD);
	double before = (double)gpu->active[MEM_TEMPORARY];
	device_reset_peak(gpu);
	timed_step(m, NULL, &b, MODE_FORWARD);
	assert_true(memory_estimate_forward(m, b.B, b.T) == gpu->total_peak - before);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	MemoryEstimate e = memory_estimate(m, b.B, b.T, true);
	timed_step(m, &adamw, &b, MODE_TRAIN);
	before = (double)gpu->active[MEM_TEMPORARY];
	device_reset_peak(gpu);
	timed_step(m, &adamw, &b, MODE_TRAIN);
	double peak = (double)gpu->total_peak - before;
	if (!(fabs(e.total / peak - 1) <= 0.01) || (!fused && e.total != peak))
		fail_msg("%s, %s: %.0f bytes, dry %.0f", policies[policy].name,
			fusion_names[fused], peak, e.total);
	for (int k = 0; k < MEM_TEMPORARY; k++)
		assert_true(e.category[k] == (double)gpu->peak[k]);
	batch_free(&b);
	optimizer_free(&adamw);
	model_free(&m);
}

static void dry_steps_take_as_much(void **state)
{
	for (int policy = 0; policy < NPOLICIES; policy++)
		for (int fused = 0; fused < 2; fused++)
			expect_as_dry(policy, fused);
}

static Attention attention_of_width(Type type, size_t D, size_t T)
{
	Heads heads = { { NULL, type }, T * 2 * D, 2 * D, D };
	return (Attention){ .B = 3, .H = 2, .seqlen_q = T, .seqlen_k = T, .D = D,
		.group = 1, .causal = true, .q = heads, .k = heads, .v = heads,
		.o = heads };
}

static void dry_attention_takes_as_much(void **state)
{
	static const Type types[] = { FP32, TF32, BF16, FP16 };
	static const size_t widths[] = { 16, 32, 64, 80, 96, 128, 256 },
		lengths[] = { 1, 64, 65, 192, 1000 };
	if (!hopper_present(gpu))
		skip();
	Device *d = dry_device("cuda");
	for (int i = 0; i < 140; i++) {
		Attention a = attention_of_width(types[i % 4], widths[i / 4 % 7],
			lengths[i / 28]);
		AttentionGradient g = { a.o, a.q, a.k, a.v };
		assert_int_equal(d->ops->attention_scratch(d, &a, NULL),
			cuda_attention_scratch(gpu, &a, NULL));
		assert_int_equal(d->ops->attention_scratch(d, &a, &g),
			cuda_attention_scratch(gpu, &a, &g));
	}
	assert_false(d->ops->supports_attention(d, BF16, 48));
	device_close(&d);
}

TESTS_BETWEEN(open_both, close_both,
	on_gpu(models_agree), on_gpu(bf16_gradients_are_near),
	on_gpu(heads_in_chunks_agree),
	on_gpu(plans_change_no_bit),
	on_gpu(blocks_run_again_with_equal_bits),
	on_gpu(spare_sms_change_rounding_alone),
	on_gpu(training_repeats), on_gpu(curves_coincide),
	on_gpu(library_takes_all_matmuls),
	on_gpu(dry_steps_take_as_much), on_gpu(dry_attention_takes_as_much))
