/* groups of the model's operations: how many there are, what they move, why
 * they end */
#include "ops/formulas.h"
#include "tests/jit/capture.h"
#include "tests/ops/compare.h"

static Capture capture;

// test the bytes of each operation
static void operations_become_kernels(void **state)
{
	static const struct { int operations, eager, fused; } want[NRECORDED] = {
		{ 5, 28, 8 }, { 10, 88, 16 }, { 7, 48, 8 }, { 7, 60, 12 }, { 3, 32, 12 },
		{ 9, 96, 20 }, { 6, 28, 8 }, { 12, 56, 8 }, { 14, 132, 28 } };
	size_t rows = 1024, C = 512, n = rows * C;
	for (int what = 0; what < NRECORDED; what++) {
		capture_begin(&capture, NULL);
		record(&capture, what, rows, C, FP32);
		capture_flush(&capture);
		const KernelPlan *p = &capture.last;
		print_message("%s: %d groups, %d operations, %.2f and %.2f bytes\n",
			recorded_names[what], capture.groups, p->g.noperations,
			p->g.bytes / n, plan_bytes(p) / n);
		assert_int_equal(capture.groups, 1);
		assert_int_equal(p->g.noperations, want[what].operations);
		assert_true(fabs(p->g.bytes / n - want[what].eager - 0.2) < 0.3);
		assert_true(fabs(plan_bytes(p) / n - want[what].fused - 0.2) < 0.3);
		capture_end(&capture);
	}
}

// test why groups end
/* y = a + b (n), then z = c + d (m) */
static const char *why_after(Array y, Array a, Array b, size_t n, Array z,
	Array c, Array d, size_t m)
{
	capture.groups = 0;
	formula_add(capture.device, y, a, b, n);
	formula_add(capture.device, z, c, d, m);
	capture_flush(&capture);
	return capture.why;
}

static void groups_say_why_they_end(void **state)
{
	enum { n = 64 };
	capture_begin(&capture, NULL);
	Array a = capture_array(&capture, 2 * n, FP32),
		b = capture_array(&capture, n, FP32),
		y = capture_array(&capture, 2 * n, FP32),
		a1 = { (float *)a.at + 1, FP32 }, y1 = { (float *)y.at + 1, FP32 },
		low = { y.at, BF16 };
	assert_string_equal(why_after(y, a, b, n, a, y, b, n), "the test ends");
	assert_int_equal(capture.groups, 1);
	assert_string_equal(why_after(y, a, b, n, a1, y, b, n),
		"it writes what the group reads, at another place");
	assert_int_equal(capture.groups, 2);
	assert_string_equal(why_after(y, a, b, n, b, y1, a, n),
		"it reads what the group writes, at another place");
	assert_string_equal(why_after(y, a, b, n, b, low, a, n),
		"it reads what the group writes, at another place");
	assert_string_equal(why_after(y, a, b, n, y1, a, b, n),
		"it writes what the group writes, at another place");
	assert_string_equal(why_after(y, a, b, n, b, y, a, n / 2),
		"it has another number of elements");
	capture_end(&capture);
}

// test that dropped stores and long rows are planned
static void removed_stores_have_no_memory(void **state)
{
	capture_begin(&capture, NULL);
	record(&capture, SWIGLU_FORWARD, 8, 64, FP32);
	capture_flush(&capture);
	void *at[MOST_POINTERS];
	assert_int_equal(plan_pointers(&capture.last, at), 3);
	for (int k = 0; k < 3; k++)
		for (int s = 0; s < capture.n; s++)
			assert_ptr_not_equal(at[k], capture.scratch[s]);
	capture_end(&capture);
}

static void long_rows_are_looped(void **state)
{
	static const size_t lengths[] = { 1, 31, 32768, 32772, 151936 };
	for (int k = 0; k < 5; k++) {
		capture_begin(&capture, NULL);
		record(&capture, NORM_FORWARD, 3, lengths[k], BF16);
		capture_flush(&capture);
		assert_int_equal(capture.groups, 1);
		assert_int_equal(capture.last.shape, lengths[k] > LONGEST_HELD
			? LOOPED_ROW : HELD_ROW);
		capture_end(&capture);
	}
}

TESTS(
	cmocka_unit_test(operations_become_kernels),
	cmocka_unit_test(groups_say_why_they_end),
	cmocka_unit_test(removed_stores_have_no_memory),
	cmocka_unit_test(long_rows_are_looped))
