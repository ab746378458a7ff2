/* the plans of all widths */
#include "ops/norm_plan.h"
#include "tests/base/program.h"

static void expect_plan(NormVersion version, bool backward, size_t C, int pack)
{
	NormPlan p = norm_plan(version, backward, C, pack);
	bool twice = p.version == NORM_TWO_READS || p.version == NORM_LOOPED;
	bool scalar = p.version == NORM_TWO_READS || p.version == NORM_HELD;
	int elements = p.per * p.pack;
	assert_true(version == NORM_BY_WIDTH ? p.version != NORM_BY_WIDTH
		: p.version == version);
	assert_int_equal(p.pack, scalar ? 1 : pack);
	assert_true(p.threads > 0 && p.threads % 32 == 0
		&& p.threads * p.rows <= 1024);
	assert_true(p.rows == 1 || p.threads == 32);
	assert_int_equal(p.per == 0, twice);
	if (twice) {
		assert_true(p.threads <= 512);
		return;
	}
	assert_true((size_t)elements * p.threads >= C);
	assert_true((size_t)elements * (p.threads - 32) < C);
	assert_true(elements <= (backward ? 8 : 16) || p.threads <= 512);
	assert_int_equal(p.ahead > 0, backward && !scalar && p.version != NORM_PACKS);
}

// try a plan for every width and pack
static size_t after(size_t C)
{
	return C < 20000 ? C + 1 : C * 3;
}

static void every_width_has_a_plan(void **state)
{
	const int packs[] = { 1, 4, 8 };
	for (int p = 0; p < 3; p++)
		for (size_t C = packs[p]; C < 1000000; C = after(C))
			for (int backward = 0; C % packs[p] == 0 && backward < 2; backward++)
				for (int v = 0; v < NORM_VERSIONS; v++)
					if (v == NORM_BY_WIDTH || v == NORM_TWO_READS
						|| v == NORM_LOOPED
						|| norm_plan(v, backward, C, packs[p]).threads)
						expect_plan(v, backward, C, packs[p]);
}

// see where rows begin to be read twice
static void wide_rows_are_read_twice(void **state)
{
	const struct { bool backward; int pack; size_t held; } most[] = {
		{ false, 1, 8192 }, { false, 4, 16384 }, { false, 8, 8184 },
		{ true, 1, 4096 }, { true, 4, 8192 }, { true, 8, 8192 } };
	for (int i = 0; i < 6; i++) {
		NormPlan in = norm_plan(NORM_BY_WIDTH, most[i].backward, most[i].held,
			most[i].pack);
		NormPlan out = norm_plan(NORM_BY_WIDTH, most[i].backward,
			most[i].held + most[i].pack, most[i].pack);
		assert_true(in.per > 0);
		assert_true(out.per == 0 && out.version == NORM_LOOPED);
	}
	assert_int_equal(norm_plan(NORM_AHEAD, false, 1024, 4).threads, 0);
	assert_int_equal(norm_plan(NORM_HELD, true, 4097, 4).threads, 0);
	assert_int_equal(norm_plan(NORM_WARP, false, 1025, 4).threads, 0);
}

TESTS(
	cmocka_unit_test(every_width_has_a_plan),
	cmocka_unit_test(wide_rows_are_read_twice))
