/* a model in parts in single precision */
#include "tests/dist/parts.h"

static void parts_in_fp32_agree_but_for_the_order_of_sums(void **state)
{
	enum { T = 6 };
	for (int i = 0; i < 4; i++) {
		Parts p = { .ranks = 2 + i % 3, .copies = 1 + i / 3,
			.shape = { 31, T, 12, 10, 3, 5, 4, 10000 }, .B = 4, .T = T,
			.sgd = true, .passes = 1 + i % 2, .steps = 4, .recompute = i,
			.tolerance = 0x1p-18 };
		compare_job(&p);
	}
}

TESTS(cmocka_unit_test(parts_in_fp32_agree_but_for_the_order_of_sums))
