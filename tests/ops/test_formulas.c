/* operations by formulas against the reference, in double */
#include "ops/formulas.h"
#include "tests/ops/on_cpu.h"

static Ops by_formulas;

// compare an operation by formulas with the reference
enum { ROWS = 21, C = 7, N = ROWS * C, NARRAYS = 5 };

typedef void Call(const Ops *ops, Array *a);

static void expect_agreement(const char *what, Call *call, bool positive)
{
	Array a[NARRAYS], b[NARRAYS];
	for (int k = 0; k < NARRAYS; k++) {
		a[k] = drawn(N, k, positive ? 3 : 0, 1);
		b[k] = copied(a[k], N);
	}
	call(&by_formulas, a);
	call(ops_for(device), b);
	for (int k = 0; k < NARRAYS; k++) {
		Expected *want = expected(N);
		for (size_t i = 0; i < N; i++)
			want[i] = rounded(reals(b[k])[i], fabs((double)reals(b[k])[i]) + 4,
				100);
		expect_close(what, a[k], want, N);
	}
}

// call each operation that has formulas
static const int32_t targets[ROWS] = { 3, 0, 6, 2, 2, 5 };
static const AdamWStep step = { (real)0.9, (real)0.1, (real)0.9, (real)0.95,
	(real)0.1, (real)0.05, (real)1e-3, (real)0.5 };

static void simple(const Ops *o, Array *a)
{
	o->fill(device, a[0], 0.1, N);
	o->cast(device, a[1], a[2], N);
	o->add(device, a[0], a[0], a[3], N);
	o->relu_forward(device, a[4], a[2], N);
	o->relu_backward(device, a[3], a[3], a[2], N);
}

static void norm(const Ops *o, Array *a)
{
	o->rmsnorm_forward(device, a[0], a[1], a[2], a[3], ROWS, C, 1e-5);
	o->rmsnorm_backward(device, a[4], a[3], a[0], a[2], a[2], a[1], ROWS, C);
}

static void softmax(const Ops *o, Array *a)
{
	o->softmax_forward(device, a[0], a[1], 0.7, ROWS / C, C);
	o->softmax_backward(device, a[2], a[3], a[0], 0.7, ROWS / C, C);
}

static void swiglu(const Ops *o, Array *a)
{
	o->swiglu_forward(device, a[0], a[1], a[2], N);
	o->swiglu_backward(device, a[3], a[4], a[3], a[1], a[2], N);
}

static void rope(const Ops *o, Array *a)
{
	o->rope(device, a[0], a[0], a[1], a[2], 1, 7, 3, 6, 1);
	o->rope(device, a[3], a[4], a[1], a[2], 1, 7, 3, 6, -1);
}

static void loss(const Ops *o, Array *a)
{
	o->cross_entropy_forward(device, a[0], a[1], a[2], targets, ROWS, C);
	o->cross_entropy_backward(device, a[2], a[2], a[1], targets, 0.3, ROWS, C);
}

static void adamw(const Ops *o, Array *a)
{
	static const int32_t skip[] = { 0, 1 };
	for (int k = 0; k < 2; k++)
		o->adamw(device, a[0], a[4], a[1], a[2], a[3], N, &step, skip + k);
}

static void formulas_agree(void **state)
{
	expect_agreement("simple operations", simple, false);
	expect_agreement("RMSNorm", norm, false);
	expect_agreement("softmax", softmax, false);
	expect_agreement("SwiGLU", swiglu, false);
	expect_agreement("RoPE", rope, false);
	expect_agreement("cross-entropy", loss, false);
	expect_agreement("AdamW", adamw, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = { checked(formulas_agree) };
	open_cpu();
	by_formulas = *ops;
	ops_by_formulas(&by_formulas);
	return close_cpu(cmocka_run_group_tests(tests, NULL, NULL));
}
