#include <string.h>

#include "base/options.h"
#include "model/sizes.h"
#include "tests/base/program.h"

// test the counts and names of the sizes
static void sizes_have_their_counts(void **state)
{
	const size_t known[NSIZES] = { 128625408, 423183360, 969411840, 1998235200,
		3406809600, 12832823808 };
	for (int i = 0; i < NSIZES; i++) {
		Shape s = model_sizes[i].shape;
		size_t V = s.vocab, C = s.d_model, F = s.d_ff, L = s.layers;
		assert_int_equal(shape_count(&s), known[i]);
		assert_int_equal(2 * V * C + L * (4 * C * C + 3 * C * F + 2 * C) + C,
			known[i]);
		assert_null(shape_error(&s));
	}
}

static void sizes_have_their_names(void **state)
{
	for (int i = 0; i < NSIZES; i++) {
		const char *name = model_sizes[i].name;
		assert_int_equal(options_choice(SIZES, name), i);
	}
	assert_string_equal(model_sizes[SIZE_SMALL].name, "small");
	assert_string_equal(model_sizes[SIZE_2_7B].name, "2.7B");
}

// test that parameters tile the buffer
static void parameters_tile_the_buffer(void **state)
{
	Shape s = { 101, 8, 12, 20, 3, 2, 6, 10000 };
	size_t next = 0, count = 0;
	int i = 0;
	for (int unit = 0; unit < shape_nunits(&s); unit++) {
		Unit u = shape_unit(&s, unit);
		assert_true(u.first == i && u.offset >= next
			&& u.offset < next + UNIT_ALIGN && u.offset % UNIT_ALIGN == 0
			&& u.extent % UNIT_ALIGN == 0);
		next = u.offset;
		for (; i < u.first + u.count; i++) {
			Parameter p = shape_parameter(&s, i);
			assert_int_equal(p.offset, next);
			assert_int_equal(p.count, p.rows * p.columns);
			next += p.count;
			count += p.count;
		}
		assert_true(next <= u.offset + u.extent);
	}
	assert_int_equal(i, shape_nparameters(&s));
	assert_int_equal(count, shape_count(&s));
	assert_true(shape_extent(&s) >= next && shape_extent(&s) < next + UNIT_ALIGN);
	for (int size = 0; size < NSIZES; size++)       /* nothing is lost */
		assert_int_equal(shape_extent(&model_sizes[size].shape),
			shape_count(&model_sizes[size].shape));
	Parameter w3 = shape_parameter(&s, shape_block_parameter(&s, 2, P_W3));
	assert_string_equal(w3.name, "layers.2.ffn.w3.weight");
}

// test that impossible shapes are refused
static void impossible_shapes_are_named(void **state)
{
	Shape odd_pairs = { 10, 8, 6, 8, 1, 2, 3, 10000 };
	Shape ragged = { 10, 8, 10, 8, 1, 4, 2, 10000 };
	Shape even = { 10, 8, 12, 8, 1, 3, 0, 10000 };
	Shape empty = { 10, 8, 8, 8, 0, 1, 8, 10000 };
	assert_non_null(shape_error(&odd_pairs));
	assert_null(shape_error(&ragged));              /* heads are not d_model */
	assert_non_null(shape_split_heads(&ragged));
	assert_non_null(shape_error(&even));
	assert_true(shape_split_heads(&even) == NULL && even.d_head == 4);
	assert_null(shape_error(&even));
	assert_non_null(shape_error(&empty));
}

TESTS(
	cmocka_unit_test(sizes_have_their_counts),
	cmocka_unit_test(sizes_have_their_names),
	cmocka_unit_test(parameters_tile_the_buffer),
	cmocka_unit_test(impossible_shapes_are_named))
