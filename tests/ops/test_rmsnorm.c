/* norms of rows on the CPU, and the library's interface */
#include "ops/rmsnorm.h"
#include "tests/ops/rmsnorm_reference.h"

static void rows_follow_the_formulas(void **state)
{
	static const size_t shapes[][2] = { { 1, 1 }, { 5, 1 }, { 3, 31 },
		{ 200, 50 }, { 7, 1024 }, { 2, 10000 } };
	norm_device = device_open("cpu");
	for (int i = 0; i < 6 * 32; i++) {
		const size_t *shape = shapes[i / 32];
		follow_the_formulas(&(NormCase){ .rows = shape[0], .C = shape[1],
			.apart = i & 1 ? 3 : 0, .fresh = i & 2, .again = i & 4,
			.x = i & 8 ? BF16 : FP32, .y = i & 8 ? BF16 : FP32,
			.all = i & 16 });
	}
	device_close(&norm_device);
}

// call the library's norm
enum { ROWS = 9, WIDTH = 50, APART = 64 };

static void library_gives_what_the_operation_gives(void **state)
{
	Array x = drawn(ROWS * APART, 1, 0.2, 1), dy = drawn(ROWS * APART, 2, 0, 1);
	Array g = drawn(WIDTH, 3, 1, 0.2), y = poisoned(ROWS * APART);
	Array dx = poisoned(ROWS * WIDTH), dg = poisoned(WIDTH);
	Array rho = poisoned(ROWS), want_y = poisoned(ROWS * APART);
	Array want_dx = poisoned(ROWS * WIDTH), want_dg = poisoned(WIDTH);
	const RmsnormShape s = { .rows = ROWS, .width = WIDTH, .x_row = APART,
		.y_row = APART, .eps = 1e-5 };
	assert_int_equal(rmsnorm_forward(&s, y.at, rho.at, x.at, g.at), RMSNORM_OK);
	assert_int_equal(rmsnorm_backward(&s, dx.at, dg.at, dy.at, x.at, g.at, NULL),
		RMSNORM_OK);
	cpu_fused_rmsnorm_forward(NULL, (NormForward){ .y = want_y, .x = x, .g = g,
		.x_row = APART, .y_row = APART, .eps = 1e-5 }, ROWS, WIDTH);
	cpu_fused_rmsnorm_backward(NULL, (NormBackward){ .dsum = want_dx,
		.fresh = true, .dg = want_dg, .dy = dy, .sum = x, .g = g, .rho = rho,
		.x_row = APART, .dy_row = APART }, ROWS, WIDTH);
	expect_same("y", y, want_y, ROWS * APART);
	expect_same("dx", dx, want_dx, ROWS * WIDTH);
	expect_same("dg", dg, want_dg, WIDTH);
}

// refuse what the norm does not take
static void bad_norms_are_refused(void **state)
{
	Array x = drawn(ROWS * WIDTH, 1, 0, 1), g = drawn(WIDTH, 2, 1, 0.1);
	Array y = poisoned(ROWS * WIDTH), dg = poisoned(WIDTH);
	const RmsnormShape s = { .rows = ROWS, .width = WIDTH, .x_row = WIDTH,
		.y_row = WIDTH, .eps = 1e-5 };
	// give bad shapes, types and versions
	RmsnormShape bad[9];
	for (int i = 0; i < 9; i++)
		bad[i] = s;
	bad[0].rows = 0, bad[1].width = -1, bad[2].x_row = WIDTH - 1;
	bad[3].y_row = 0, bad[4].eps = NAN, bad[5].type = 7;
	bad[6].type = RMSNORM_BF16, bad[7].version = NORM_VERSIONS;
	bad[8].on_gpu = 1, bad[8].rows = (int64_t)1 << 31;
	const int32_t why[] = { RMSNORM_BAD_SHAPE, RMSNORM_BAD_SHAPE,
		RMSNORM_BAD_SHAPE, RMSNORM_BAD_SHAPE, RMSNORM_BAD_SHAPE,
		RMSNORM_BAD_TYPE, RMSNORM_BAD_TYPE, RMSNORM_BAD_VERSION,
		RMSNORM_BAD_SHAPE };
	for (int i = 0; i < 9; i++) {
		assert_int_equal(rmsnorm_forward(&bad[i], y.at, NULL, x.at, g.at),
			why[i]);
		assert_int_equal(rmsnorm_backward(&bad[i], y.at, dg.at, x.at, x.at, g.at,
			NULL), why[i]);
	}
	assert_int_equal(rmsnorm_forward(&s, NULL, NULL, x.at, g.at), RMSNORM_NULL);
	assert_int_equal(rmsnorm_forward(NULL, y.at, NULL, x.at, g.at), RMSNORM_NULL);
	assert_int_equal(rmsnorm_backward(&s, y.at, NULL, x.at, x.at, g.at, NULL),
		RMSNORM_NULL);
	RmsnormShape wide = s;
	wide.version = NORM_WARP, wide.width = wide.x_row = wide.y_row = 1 << 20;
	assert_int_equal(rmsnorm_forward(&wide, y.at, NULL, x.at, g.at),
		RMSNORM_BAD_VERSION);
	expect_same("y", y, poisoned(ROWS * WIDTH), ROWS * WIDTH);
	expect_same("dg", dg, poisoned(WIDTH), WIDTH);
	assert_string_equal(rmsnorm_status(RMSNORM_OK), "done");
	assert_string_equal(rmsnorm_status(-1), "no such status");
	assert_string_equal(rmsnorm_status(RMSNORM_CAPTURES + 1), "no such status");
}

TESTS(
	cmocka_unit_test_teardown(rows_follow_the_formulas, release_norm),
	checked(library_gives_what_the_operation_gives),
	checked(bad_norms_are_refused))
