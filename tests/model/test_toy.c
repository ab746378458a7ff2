/* the toy model's gradients against differences, and its types; f64 build */
#include <math.h>

#include "model/toy.h"
#include "tests/base/difference.h"
#include "tests/base/program.h"

// test: the toy's gradients are the differences of its loss
static double loss(void *toy)
{
	return toy_forward(toy);
}

static void check_parameter(Toy *t, ToyTensor parameter, ToyTensor gradient)
{
	real *w = t->tensor[parameter].at;
	for (size_t i = 0; i < toy_count(t, parameter); i++) {
		double want = slope_at(loss, t, w + i, 1e-6),
			got = ((real *)t->tensor[gradient].at)[i];
		if (!(fabs(got - want) <= 1e-8 + 1e-6 * fabs(want)))
			fail_msg("%s[%zu] is %.10g, not %.10g", toy_names[gradient], i,
			         got, want);
	}
}

// compare the toy's gradients after two passes
static void test_gradients(void **state)
{
	Device *device = device_open("cpu");
	Toy *t = toy_new(device, &policies[POLICY_FP32], 1);
	for (int twice = 0; twice < 2; twice++) {
		toy_forward(t);
		toy_backward(t);
	}
	check_parameter(t, TOY_FC1_W, TOY_DFC1_W);
	check_parameter(t, TOY_GAIN, TOY_DGAIN);
	check_parameter(t, TOY_SHIFT, TOY_DSHIFT);
	check_parameter(t, TOY_FC2_W, TOY_DFC2_W);
	toy_free(&t);
	device_close(&device);
}

// test: the toy's tensors have the policy's types, and keep them
static void test_types(void **state)
{
	Device *device = device_open("cpu");
	const Type low[] = { TYPE_REAL, BF16, FP16 };       /* as in PRECISIONS */
	for (int p = 0; p < 3; p++) {
		Toy *t = toy_new(device, &policies[p], 1);
		assert_true(isfinite(toy_forward(t)));
		toy_backward(t);
		for (int i = 0; i < NTOY; i++) {
			int narrow = i == TOY_FC1 || i == TOY_RELU || i == TOY_LOGITS ||
				i == TOY_DFC1 || i == TOY_DRELU || i == TOY_DLOGITS;
			assert_int_equal(t->tensor[i].type, narrow ? low[p] : TYPE_REAL);
			const real *x = t->tensor[i].at;
			for (size_t j = 0; narrow && p > 0 && j < toy_count(t, i); j++)
				assert_true(x[j] == round_to(low[p], (float)x[j]));
		}
		toy_free(&t);
	}
	device_close(&device);
}

TESTS(cmocka_unit_test(test_gradients), cmocka_unit_test(test_types))
