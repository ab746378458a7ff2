/* the model's operations, recorded and compiled, against one at a time */
#define _GNU_SOURCE
#include "jit/jit.h"
#include "tests/ops/compare.h"

static Device *device;
static Ops eager;

// run an operation twice
enum { MOST_RUN = 6 };
/* arrays of an operation; those that are written are compared */
typedef struct FusionCase {
	size_t rows, C;
	Type type;
	Array a[MOST_RUN], start[MOST_RUN];
	size_t n[MOST_RUN];
	void (*run)(const struct FusionCase *c, const Ops *ops);
	const int32_t *targets;
} FusionCase;

static void give(FusionCase *c, int k, size_t n, Type type)
{
	/* one element further: unaligned */
	c->start[k] = drawn(n, 10 + k, 0, 1);
	round_array(type, c->start[k].at, n);
	c->a[k] = array_at(poisoned(n + 1), 1);
	c->a[k].type = type;
	c->n[k] = n;
}

static void begin_case(FusionCase *c)
{
	for (int k = 0; k < MOST_RUN; k++)
		if (c->n[k])
			memcpy(c->a[k].at, c->start[k].at, c->n[k] * sizeof(real));
}

static void expect_same_twice(FusionCase *c, const char *what)
{
	Array once[MOST_RUN];
	begin_case(c);
	c->run(c, &eager);
	for (int k = 0; k < MOST_RUN; k++)
		if (c->n[k])
			once[k] = copied(c->a[k], c->n[k]);
	begin_case(c);
	assert_true(jit_start(device, (JitSettings){ 0 }));
	c->run(c, ops_for(device));
	jit_stop(device);
	for (int k = 0; k < MOST_RUN; k++)
		if (c->n[k])
			expect_same(what, c->a[k], once[k], c->n[k]);
}

// test operations against one at a time
static void run_norm(const FusionCase *c, const Ops *ops)
{
	ops->rmsnorm_forward(device, c->a[0], c->a[1], c->a[2], c->a[3], c->rows,
		c->C, 1e-5);
	ops->rmsnorm_backward(device, c->a[4], c->a[5], c->a[0], c->a[2], c->a[3],
		c->a[1], c->rows, c->C);
}

static void norms_agree(void **state)
{
	static const struct { size_t rows, C; Type type; } sizes[] = {
		{ 1, 1, TYPE_REAL }, { 37, 31, BF16 }, { 200, 50, TYPE_REAL },
		{ 3, 16400, FP16 } };
	for (int i = 0; i < 4; i++) {
		size_t rows = sizes[i].rows, C = sizes[i].C;
		FusionCase c = { rows, C, sizes[i].type, .run = run_norm };
		give(&c, 0, rows * C, c.type);
		give(&c, 1, rows, TYPE_REAL);
		give(&c, 2, rows * C, TYPE_REAL);
		give(&c, 3, C, TYPE_REAL);
		give(&c, 4, rows * C, TYPE_REAL);
		give(&c, 5, C, c.type);
		expect_same_twice(&c, "RMSNorm");
	}
}

static void run_softmax(const FusionCase *c, const Ops *ops)
{
	ops->softmax_forward(device, c->a[0], c->a[0], 0.3, c->rows / c->C, c->C);
	ops->softmax_backward(device, c->a[1], c->a[1], c->a[0], 0.3,
		c->rows / c->C, c->C);
}

static void softmax_agrees(void **state)
{
	static const Type types[] = { TYPE_REAL, BF16 };
	for (int i = 0; i < 2; i++) {
		FusionCase c = { 3 * 50, 50, types[i], .run = run_softmax };
		give(&c, 0, c.rows * c.C, c.type);
		give(&c, 1, c.rows * c.C, c.type);
		expect_same_twice(&c, "softmax");
	}
}

static void run_rope(const FusionCase *c, const Ops *ops)
{
	ops->rope(device, c->a[0], c->a[0], c->a[1], c->a[2], 2, 7, 3, 10, 1);
	ops->rope(device, c->a[3], c->a[0], c->a[1], c->a[2], 2, 7, 3, 10, -1);
}

static void rope_agrees(void **state)
{
	FusionCase c = { 2 * 7 * 3, 10, FP16, .run = run_rope };
	give(&c, 0, c.rows * c.C, c.type);
	give(&c, 1, 7 * 5, TYPE_REAL);
	give(&c, 2, 7 * 5, TYPE_REAL);
	give(&c, 3, c.rows * c.C, c.type);
	expect_same_twice(&c, "RoPE");
}

static void run_swiglu(const FusionCase *c, const Ops *ops)
{
	size_t n = c->rows * c->C;
	ops->swiglu_forward(device, c->a[3], c->a[0], c->a[1], n);
	ops->add(device, c->a[4], c->a[3], c->a[0], n);
	ops->swiglu_backward(device, c->a[2], c->a[3], c->a[2], c->a[0], c->a[1], n);
}

static void swiglu_agrees(void **state)
{
	FusionCase c = { 11, 31, BF16, .run = run_swiglu };
	for (int k = 0; k < 5; k++)
		give(&c, k, c.rows * c.C, c.type);
	expect_same_twice(&c, "SwiGLU");
}

static void run_loss(const FusionCase *c, const Ops *ops)
{
	ops->cross_entropy_forward(device, c->a[0], c->a[1], c->a[2], c->targets,
		c->rows, c->C);
	ops->cross_entropy_backward(device, c->a[2], c->a[2], c->a[1], c->targets,
		0.25, c->rows, c->C);
}

static void losses_agree(void **state)
{
	static const size_t sizes[][2] = { { 5, 10000 }, { 1, 151936 } };
	for (int i = 0; i < 2; i++) {
		FusionCase c = { sizes[i][0], sizes[i][1], TYPE_REAL, .run = run_loss };
		c.targets = drawn_tokens(c.rows, 3, c.C);
		give(&c, 0, c.rows, TYPE_REAL);
		give(&c, 1, c.rows, TYPE_REAL);
		give(&c, 2, c.rows * c.C, c.type);
		expect_same_twice(&c, "cross-entropy");
	}
}

static void run_adamw(const FusionCase *c, const Ops *ops)
{
	static AdamWStep step = { .keep = (real)0.9, .rate = (real)0.1,
		.beta1 = (real)0.9, .beta2 = (real)0.95, .one_minus_beta1 = (real)0.1,
		.one_minus_beta2 = (real)0.05, .eps = (real)1e-8, .unscale = (real)0.5 };
	static int32_t skip[] = { 0, 1 };
	for (int k = 0; k < 2; k++)
		ops->adamw(device, c->a[0], c->a[4], c->a[1], c->a[2], c->a[3], c->C,
			&step, skip + k);
}

static void adamw_agrees(void **state)
{
	FusionCase c = { 1, 1031, BF16, .run = run_adamw };
	for (int k = 0; k < 5; k++)
		give(&c, k, c.C, k == 4 ? c.type : TYPE_REAL);
	for (size_t i = 0; i < c.C; i++)        /* roots of sums of squares */
		reals(c.start[3])[i] = (real)fabs(reals(c.start[3])[i]);
	expect_same_twice(&c, "AdamW");
}

// test memory and counts
static void scratch_needs_no_memory(void **state)
{
	FusionCase c = { 8, 64, TYPE_REAL, .run = run_swiglu };
	for (int k = 0; k < 5; k++)
		give(&c, k, c.rows * c.C, c.type);
	begin_case(&c);
	jit_start(device, (JitSettings){ 0 });
	device_reset_peak(device);
	run_swiglu(&c, ops_for(device));
	jit_stop(device);
	assert_int_equal(device->total_peak, 0);
	jit_start(device, (JitSettings){ 0 });
	Array half = array_new(device, 512, TYPE_REAL, MEM_TEMPORARY, "half");
	const Ops *ops = ops_for(device);
	ops->add(device, half, c.a[0], c.a[1], 512);
	ops->add(device, c.a[2], half, c.a[0], 512);
	device_free(device, half.at);           /* before it was written */
	assert_true(device->total > 0);         /* and until the group is done */
	jit_stop(device);
	assert_int_equal(device->total, 0);
}

// test that readers find results
static void readers_find_results(void **state)
{
	real got[3];
	jit_start(device, (JitSettings){ 0 });
	const Ops *ops = ops_for(device);
	Array x = array_new(device, 3, TYPE_REAL, MEM_TEMPORARY, "x");
	ops->fill(device, x, 2, 3);
	array_read(device, got, x, 3);
	assert_true(got[0] == 2 && got[2] == 2);
	ops->add(device, x, x, x, 3);
	device_event(device, COMPUTE);
	assert_true(reals(x)[1] == 4);
	ops->add(device, x, x, x, 3);
	device_stamp(device, COMPUTE, 0);
	assert_true(reals(x)[1] == 8);
	ops->add(device, x, x, x, 3);
	device_now_ms(device);
	assert_true(reals(x)[1] == 16);
	device_free(device, x.at);
	jit_stop(device);
}

// test that each operation can be a group of its own
static void operations_can_be_alone(void **state)
{
	FusionCase c = { 8, 64, BF16, .run = run_swiglu };
	JitCounts before = jit_counts(device);
	for (int k = 0; k < 5; k++)
		give(&c, k, c.rows * c.C, c.type);
	begin_case(&c);
	assert_true(jit_start(device, (JitSettings){ .alone = true }));
	run_swiglu(&c, ops_for(device));
	jit_stop(device);
	JitCounts after = jit_counts(device);
	assert_int_equal(after.operations - before.operations, 13);
	assert_int_equal(after.kernels - before.kernels, 13);
	assert_true(after.bytes - before.bytes
		== after.bytes_eager - before.bytes_eager);
	Array once[5];
	for (int k = 0; k < 5; k++)
		once[k] = copied(c.a[k], c.n[k]);
	begin_case(&c);
	run_swiglu(&c, &eager);
	for (int k = 0; k < 5; k++)
		expect_same("each operation alone", once[k], c.a[k], c.n[k]);
	assert_int_equal(device->total, 0);
}

// test that kernels are shared by shapes
static void kernels_are_shared(void **state)
{
	jit_start(device, (JitSettings){ 0 });
	const Ops *ops = ops_for(device);
	long compiled = 0, operations = jit_counts(device).operations;
	for (size_t rows = 2; rows < 5; rows++) {
		Array x = poisoned(rows * 17), y = poisoned(rows * 17),
			g = poisoned(17), rho = poisoned(rows);
		ops->rmsnorm_forward(device, y, rho, x, g, rows, 17, 0.1 * (double)rows);
		jit_stop(device);
		jit_start(device, (JitSettings){ 0 });
		if (rows == 2)
			compiled = jit_counts(device).compiled;
	}
	assert_int_equal(jit_counts(device).compiled, compiled);
	assert_int_equal(jit_counts(device).operations, operations + 15);
	jit_stop(device);
}


int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(norms_agree), checked(softmax_agrees), checked(rope_agrees),
		checked(swiglu_agrees), checked(losses_agree), checked(adamw_agrees),
		checked(scratch_needs_no_memory), checked(kernels_are_shared),
		checked(operations_can_be_alone),
		checked(readers_find_results),
	};
	device = device_open("cpu");
	eager = *ops_for(device);
	ops_by_formulas(&eager);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (!failed)
		device_close(&device);
	return failed;
}
