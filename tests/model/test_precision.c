
#include "base/options.h"
#include "model/precision.h"
#include "ops/array.h"
#include "tests/base/program.h"

/* what a policy rounds: operands of matmuls, activations, gradients, weights */
static void policies_round_what_they_say(void **state)
{
	static const struct { const char *name; Type read, stored, gradient,
		parameter; bool fp8; } want[] = {
		{ "fp32", TYPE_REAL, TYPE_REAL, TYPE_REAL, TYPE_REAL, false },
		{ "tf32", TF32, TYPE_REAL, TYPE_REAL, TYPE_REAL, false },
		{ "bf16-stream", BF16, BF16, BF16, TYPE_REAL, false },
		{ "bf16-state", BF16, BF16, BF16, BF16, false },
		{ "fp8", BF16, BF16, TYPE_REAL, TYPE_REAL, true } };
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		Policy p = policies[options_choice(PRECISIONS, want[i].name)];
		assert_string_equal(p.name, want[i].name);
		assert_int_equal(p.op[OP_SCORES].input, want[i].read);
		assert_int_equal(p.op[OP_SWIGLU].output, want[i].stored);
		assert_int_equal(p.gradient, want[i].gradient);
		assert_int_equal(p.parameter, want[i].parameter);
		assert_int_equal(p.fp8, want[i].fp8);
	}
}

static void gradients_travel_without_a_cast(void **state)
{
	const Policy *p = policies;
	assert_int_equal(policy_gradient(&p[POLICY_BF16], BF16), BF16);
	assert_int_equal(policy_gradient(&p[POLICY_BF16], FP32), TYPE_REAL);
	assert_int_equal(policy_gradient(&p[POLICY_TF32], BF16), TYPE_REAL);
	assert_int_equal(policy_gradient(&p[POLICY_BF16_STREAM], FP32), BF16);
}

TESTS(cmocka_unit_test(policies_round_what_they_say),
	cmocka_unit_test(gradients_travel_without_a_cast))
