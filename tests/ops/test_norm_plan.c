/* the plans of all widths */
#include "ops/norm_blocks.h"
#include "tests/base/program.h"

static void expect_plan(NormVersion version, bool backward, size_t C, int pack)
{
	NormPlan p = norm_plan(version, backward, C, pack);
	bool twice = p.version == NORM_TWO_READS || p.version == NORM_LOOPED;
	bool scalar = p.version == NORM_TWO_READS || p.version == NORM_HELD;
	size_t elements = (size_t)p.per * p.pack, row = p.threads * p.blocks;
	assert_true(version == NORM_BY_WIDTH ? p.version != NORM_BY_WIDTH
		: p.version == version);
	assert_int_equal(p.pack, scalar ? 1 : pack);
	assert_true(p.threads > 0 && p.threads % 32 == 0
		&& p.threads * p.rows <= 1024);
	assert_true(p.rows == 1 || p.threads == 32);
	assert_int_equal(p.per == 0, twice);
	assert_int_equal(p.blocks > 1, p.version == NORM_CLUSTER);
	assert_int_equal(p.slots > 1, !twice && p.rows == 1
		&& (backward || p.blocks > 1));
	if (twice) {
		assert_true(p.threads <= 512);
		return;
	}
	assert_true(elements * row >= C);
	assert_true(elements * p.blocks * (p.threads - 32) < C);
	assert_true((elements <= 16 && p.slots == 0) || p.threads <= 512);
	assert_true(p.blocks <= 16 && (p.blocks & (p.blocks - 1)) == 0);
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

// see where rows begin to be shared, and to be read twice
static void wide_rows_are_shared(void **state)
{
	const struct { bool backward; int pack; size_t block, cluster; } most[] = {
		{ false, 1, 8192, 0 }, { false, 4, 16384, 131072 },
		{ false, 8, 16384, 262144 }, { true, 1, 4096, 0 },
		{ true, 4, 8192, 131072 }, { true, 8, 16384, 262144 } };
	for (int i = 0; i < 6; i++) {
		bool backward = most[i].backward;
		int pack = most[i].pack;
		size_t block = most[i].block, cluster = most[i].cluster;
		NormPlan p = norm_plan(NORM_BY_WIDTH, backward, block, pack);
		assert_true(p.per > 0 && p.blocks == 1);
		p = norm_plan(NORM_BY_WIDTH, backward, block + pack, pack);
		assert_int_equal(p.version, cluster ? NORM_CLUSTER : NORM_LOOPED);
		p = norm_plan(NORM_BY_WIDTH, backward, cluster, pack);
		assert_int_equal(p.blocks, cluster ? 16 : 1);
		p = norm_plan(NORM_BY_WIDTH, backward, cluster + pack, pack);
		assert_true(cluster == 0 || p.version == NORM_LOOPED);
	}
	assert_int_equal(norm_plan(NORM_AHEAD, false, 1024, 4).threads, 0);
	assert_int_equal(norm_plan(NORM_HELD, true, 4097, 4).threads, 0);
	for (int backward = 0; backward < 2; backward++)
		assert_int_equal(norm_plan(NORM_WARP, backward, 1028, 4).threads, 0);
	assert_int_equal(norm_plan(NORM_CLUSTER, true, 8192, 4).threads, 0);
}

// count slots and blocks
static void rings_fit_and_feed(void **state)
{
	const size_t room = 225 << 10, bytes[] = { 8, 12, 10, 4, 6 };
	for (size_t C = 8; C < 300000; C = after(C))
		for (int i = 0; C % 8 == 0 && i < 5; i++) {
			NormPlan p = norm_plan(NORM_BY_WIDTH, true, C, i < 3 ? 4 : 8);
			if (p.rows > 1) {
				size_t warps = p.rows * norm_blocks(&p, 0, 50000, 132);
				assert_true(4 <= warps && warps <= 64);
			}
			if (p.slots == 0)
				continue;
			size_t slot = (size_t)p.per * p.pack * p.threads * bytes[i];
			int slots = norm_slots(&p, slot, room);
			assert_true(2 <= slots && slots <= p.slots && slots * slot <= room);
			size_t blocks = norm_blocks(&p, slots * slot, 50000, 132);
			assert_true(blocks >= 1 && blocks * 132 * 8 <= 50000 + 132 * 8);
			assert_true(blocks == 1 || (blocks - 1) * slots * slot < 128 << 10
				|| p.blocks > 1);
			assert_int_equal(norm_blocks(&p, slots * slot, 1, 132), 1);
		}
}

TESTS(
	cmocka_unit_test(every_width_has_a_plan),
	cmocka_unit_test(wide_rows_are_shared),
	cmocka_unit_test(rings_fit_and_feed))
