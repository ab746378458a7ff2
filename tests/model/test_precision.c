
#include "base/options.h"
#include "model/precision.h"
#include "tests/base/program.h"

static void policies_have_their_names(void **state)
{
	for (int i = 0; i < NPOLICIES; i++)
		assert_int_equal(options_choice(PRECISIONS, policies[i].name), i);
	assert_string_equal(policies[POLICY_BF16].name, "bf16");
}

TESTS(cmocka_unit_test(policies_have_their_names))
