/* compiled kernels against one kernel for each operation, on a GPU */
#include <string.h>

#include "jit/jit.h"
#include "ops/array.h"
#include "tests/ops/compare.h"

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
	Ops one_by_one = *ops_for(gpu);
	char text[128];
	ops_by_formulas(&one_by_one);
	run_on_gpu(w, call, &one_by_one, once);
	assert_true(jit_start(gpu, (JitSettings){ 0 }));
	run_on_gpu(w, call, ops_for(gpu), again);
	jit_stop(gpu);
	for (int k = 0; k < NARRAYS; k++) {
		snprintf(text, sizeof text, "%s, %zu x %zu, %s, shift %zu, array %d",
			what, w->rows, w->C, type_names[w->type], w->shift, k);
		expect_same(text, again[k], once[k], w->rows * w->C);
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
	device_close(&gpu);
}

int main(void)
{
	const struct CMUnitTest tests[] = { checked(kernels_agree) };
	gpu = device_open("auto");
	bool there = strcmp(gpu->backend->name, "cuda") == 0;
	if (!there)
		device_close(&gpu);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
