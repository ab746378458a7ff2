#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/options.h"
#include "model/precision.h"

static void policies_have_their_names(void **state)
{
	(void)state;
	for (int i = 0; i < NPOLICIES; i++) {
		assert_int_equal(options_choice(PRECISIONS, policies[i].name), i);
		assert_ptr_equal(policy_find(policies[i].name), &policies[i]);
	}
	assert_null(policy_find("fp8"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_have_their_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
