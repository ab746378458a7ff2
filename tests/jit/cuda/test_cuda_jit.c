/* compiled kernels against one kernel for each operation, on a GPU */
#include <string.h>

#include "jit/jit.h"
#include "ops/array.h"
#include "tests/ops/compare.h"
#include "train/step.h"

static Device *gpu;

// arrays of a GPU before and after
enum { NARRAYS = 6 };

typedef struct Work {
	size_t rows, C;
	Type type;
	size_t shift;                   /* elements by which arrays are unaligned */
	const int32_t *targets;
} Work;

typedef void Call(const Ops *ops, const Work *w, Array *a);

/* draws the arrays, makes the call, and returns what is in the arrays
 * afterwards */
static void run_on_gpu(const Work *w, Call *call, const Ops *ops, Array *after)
{
	size_t n = w->rows * w->C;
	Array block[NARRAYS], a[NARRAYS];
	for (int k = 0; k < NARRAYS; k++) {
		Type type = k < 3 ? w->type : FP32;
		Array start = drawn(n, k, 0, 1);
		block[k] = array_new(gpu, n + 8, type, MEM_TEMPORARY, "test");
		a[k] = array_part(gpu, block[k], w->shift);
		array_write(gpu, a[k], start.at, n);
	}
	call(ops, w, a);
	for (int k = 0; k < NARRAYS; k++) {
		after[k] = poisoned(n);
		array_read(gpu, after[k].at, a[k], n);
		device_free(gpu, block[k].at);
	}
}

static void expect_equal(const Work *w, Call *call, const char *what)
{
	Array once[NARRAYS], again[NARRAYS];
	char text[128];
	run_on_gpu(w, call, ops_for(gpu), once);
	for (int alone = 0; alone < 2; alone++) {
		assert_true(jit_start(gpu, (JitSettings){ .alone = alone }));
		run_on_gpu(w, call, ops_for(gpu), again);
		jit_stop(gpu);
		for (int k = 0; k < NARRAYS; k++) {
			snprintf(text, sizeof text, "%s, %zu x %zu, %s, shift %zu, %s, "
				"array %d", what, w->rows, w->C, type_names[w->type], w->shift,
				alone ? "alone" : "fused", k);
			expect_same(text, again[k], once[k], w->rows * w->C);
		}
	}
}

// operations of every kind on a GPU
static void norm(const Ops *o, const Work *w, Array *a)
{
	o->rmsnorm_forward(gpu, a[0], a[5], a[3], a[4], w->rows, w->C, 1e-5);
	o->rmsnorm_backward(gpu, a[3], a[4], a[1], a[2], a[0], a[5], w->rows, w->C);
}

static void softmax(const Ops *o, const Work *w, Array *a)
{
	o->softmax_forward(gpu, a[0], a[0], 0.7, w->rows / w->C, w->C);
	o->softmax_backward(gpu, a[1], a[1], a[0], 0.7, w->rows / w->C, w->C);
}

/* probabilities down to zero: their quotients are no normal numbers */
static void steep_softmax(const Ops *o, const Work *w, Array *a)
{
	o->softmax_forward(gpu, a[3], a[0], 30, w->rows / w->C, w->C);
	o->softmax_forward(gpu, a[1], a[1], 1e30, w->rows / w->C, w->C);
}

static void flat(const Ops *o, const Work *w, Array *a)
{
	size_t n = w->rows * w->C;
	o->swiglu_forward(gpu, a[0], a[1], a[2], n);
	o->swiglu_backward(gpu, a[3], a[4], a[0], a[1], a[2], n);
	o->add(gpu, a[5], a[0], a[3], n);
	o->relu_backward(gpu, a[5], a[5], a[4], n);
	o->cast(gpu, a[2], a[5], n);
}

static void rope(const Ops *o, const Work *w, Array *a)
{
	o->rope(gpu, a[0], a[0], a[3], a[4], w->rows / 8, 4, 2, w->C / 2 * 2, 1);
	o->rope(gpu, a[1], a[2], a[3], a[4], w->rows / 8, 4, 2, w->C / 2 * 2, -1);
}

static void loss(const Ops *o, const Work *w, Array *a)
{
	o->cross_entropy_forward(gpu, a[3], a[4], a[0], w->targets, w->rows, w->C);
	o->cross_entropy_backward(gpu, a[0], a[0], a[4], w->targets, 0.3, w->rows,
		w->C);
}

// test compiled kernels on a GPU
static void kernels_agree(void **state)
{
	static const Type types[] = { FP32, BF16, FP16, TF32 };
	static const size_t widths[] = { 2, 31, 50, 512, 2560, 10000, 20000,
		32768 };
	if (gpu == NULL)
		skip();
	for (int k = 0; k < 8; k++) {
		Work w = { 64, widths[k], types[k % 4], k % 2 ? 3 : 0, NULL };
		int32_t *tokens = drawn_tokens(w.rows, 3, w.C);
		int32_t *targets = device_alloc(gpu, w.rows * 4, MEM_TEMPORARY,
			"targets");
		device_upload(gpu, targets, tokens, w.rows * 4);
		w.targets = targets;
		expect_equal(&w, norm, "RMSNorm");
		expect_equal(&w, flat, "flat");
		expect_equal(&w, rope, "RoPE");
		expect_equal(&w, loss, "cross-entropy");
		w.rows = w.C;
		if (w.C <= 512) {
			expect_equal(&w, softmax, "softmax");
			expect_equal(&w, steep_softmax, "steep softmax");
		}
		device_free(gpu, targets);
	}
}

// test models on a GPU
enum { STEPS = 3 };

/* the losses of STEPS steps, and then the weights */
static Array train(const Shape *shape, const Policy *policy)
{
	Model *m = model_new(gpu, shape, policy, 7);
	Optimizer adamw = adamw_new(m, 1e-2, 0.9, 0.95, 1e-8, 0.1);
	Array all = poisoned(STEPS + m->extent);
	for (int i = 0; i < STEPS; i++) {
		Batch b = batch_random(3, shape->context, shape->vocab, 11 + i);
		reals(all)[i] = (real)timed_step(m, &adamw, &b, MODE_TRAIN).loss;
		batch_free(&b);
	}
	array_read(gpu, reals(all) + STEPS, m->weights, m->extent);
	optimizer_free(&adamw);
	model_free(&m);
	return all;
}

static void models_agree(void **state)
{
	static const Shape shapes[] = { { 13, 8, 18, 22, 2, 3, 6, 10000 },
		{ 101, 33, 36, 50, 2, 3, 12, 10000 },
		{ 1000, 64, 64, 172, 2, 1, 64, 10000 },
		{ 257, 17, 48, 50, 1, 3, 16, 10000 },
		{ 20001, 40, 128, 256, 2, 2, 64, 10000 } };
	if (gpu == NULL)
		skip();
	for (int k = 0; k < 5 * NAUTOCAST; k++) {
		const Shape *shape = &shapes[k / NAUTOCAST];
		const Policy *policy = &policies[k % NAUTOCAST];
		Array eager = train(shape, policy);
		for (int alone = 0; alone < 2; alone++) {
			char text[80];
			snprintf(text, sizeof text, "shape %d, %s, %s", k / NAUTOCAST,
				policy->name, alone ? "alone" : "fused");
			assert_true(jit_start(gpu, (JitSettings){ .alone = alone }));
			Array compiled = train(shape, policy);
			jit_stop(gpu);
			expect_same(text, compiled, eager, STEPS + shape_extent(shape));
		}
		release(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { checked(kernels_agree),
		checked(models_agree) };
	gpu = device_open("auto");
	bool there = strcmp(gpu->backend->name, "cuda") == 0;
	if (!there)
		device_close(&gpu);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (gpu && !failed)
		device_close(&gpu);             /* asserts that nothing is in use */
	return failed;
}
