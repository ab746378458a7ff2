#define _GNU_SOURCE
/* variants of attention on random inputs, and their check */
#include <omp.h>

#include "cases/attention_case.h"
#include "ops/array.h"
#include "tests/base/exits.h"
#include "tests/ops/compare.h"

enum { CAUSAL = 1, SPOIL = 2 };

// run a case by every variant
static void run_case(size_t B, size_t H, size_t n, size_t D, int how)
{
	Device *d = device_open("cpu");
	for (int v = 0; v <= NATTENTION_VARIANTS; v++) {
		const char *name = v < NATTENTION_VARIANTS ? attention_variants[v]
			: "chosen-atomic";
		bool causal = how & CAUSAL, naive = strcmp(name, "naive") == 0,
			here = naive ? causal
				: v == NATTENTION_VARIANTS || strcmp(name, "tiled") == 0;
		AttentionCase a = attention_case(d, B, H, n, D, causal, TYPE_REAL, 3);
		attention_case_gradients(&a, 4);
		assert_true(attention_case_take(&a, name) == here);
		if (!here) {                    /* a GPU's, or of causal cases */
			attention_case_free(&a);
			continue;
		}
		if (!naive)
			assert_string_equal(a.kernel->name, "tiled");
		assert_true(a.deterministic == (v < NATTENTION_VARIANTS));
		attention_case_forward(&a);
		attention_case_backward(&a);
		if (how & SPOIL)
			array_write(d, array_part(d, a.dq, ((B - 1) * n + n - 1) * H * D
				+ H / 2 * D), &(real){ 3 }, 1);
		double worst = attention_case_check(&a, true, 5e-5);
		assert_true(worst >= 0 && worst <= 5e-5 && (n == 1 || worst > 0));
		attention_case_free(&a);
	}
	device_close(&d);
}

// check variants, and a spoilt element
static void variants_agree_with_formulas(void **state)
{
	for (int how = 0; how <= CAUSAL; how++) {
		run_case(1, 1, 1, 16, how);
		run_case(2, 3, 65, 16, how);
		run_case(1, 2, 130, 32, how);
	}
}

static void spoilt(void *unused)
{
	run_case(2, 3, 65, 16, CAUSAL | SPOIL);
}

static void wrong_element_is_found(void **state)
{
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
