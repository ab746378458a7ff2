#define _GNU_SOURCE
/* variants of attention on random inputs, and their check */
#include <omp.h>

#include "experiments/attention_case.h"
#include "ops/array.h"
#include "tests/base/exits.h"
#include "tests/ops/compare.h"

static void run_case(size_t B, size_t H, size_t n, size_t D, bool spoil)
{
	Device *d = device_open("cpu");
	for (int v = 0; v < NVARIANTS; v++) {
		AttentionCase a = attention_case(d, B, H, n, D, true, TYPE_REAL, 3);
		bool here = strcmp(attention_variants[v], "naive") == 0
			|| strcmp(attention_variants[v], "tiled") == 0;
		attention_case_gradients(&a, 4);
		assert_true(attention_case_take(&a, attention_variants[v]) == here);
		if (!here) {                    /* a GPU's */
			attention_case_free(&a);
			continue;
		}
		attention_case_forward(&a);
		attention_case_backward(&a);
		if (spoil)
			array_write(d, array_part(d, a.dq, ((B - 1) * n + n - 1) * H * D
				+ H / 2 * D), &(real){ 3 }, 1);
		attention_case_check(&a, true, 5e-5);
		attention_case_free(&a);
	}
	device_close(&d);
}

static void variants_agree_with_formulas(void **state)
{
	(void)state;
	run_case(1, 1, 1, 16, false);
	run_case(2, 3, 65, 16, false);
	run_case(1, 2, 130, 32, false);
}

static void spoilt(void *unused)
{
	(void)unused;
	run_case(2, 3, 65, 16, true);
}

static void wrong_element_is_found(void **state)
{
	(void)state;
	assert_int_equal(exit_status(spoilt, NULL), 1);
}

int main(void)
{
	omp_set_num_threads(1);             /* the child of a fork has no others */
	const struct CMUnitTest tests[] = {
		checked(variants_agree_with_formulas),
		cmocka_unit_test(wrong_element_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
