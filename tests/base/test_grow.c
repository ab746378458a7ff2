#include <stdlib.h>

#include "base/grow.h"
#include "tests/base/program.h"

// test that a list keeps its elements
static void a_list_keeps_its_elements(void **state)
{
	int *list = NULL;
	for (int n = 0; n < 1000; n++) {
		list = grow(list, n, sizeof *list);
		list[n] = n;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(list[i], i);
	free(list);
}

// test that a ring keeps what is between its ends
static void a_ring_keeps_what_is_between_its_ends(void **state)
{
	int *ring = NULL;
	size_t capacity = 0, first = 0, end = 0;
	for (int step = 0; step < 3000; step++) {
		if (end - first == capacity)
			ring = grow_ring(ring, &capacity, first, end, sizeof *ring);
		ring[end % capacity] = (int)end;
		end++;
		first += step % 3 == 2;
		for (size_t i = first; i < end; i += 1 + i / 50)
			assert_int_equal(ring[i % capacity], i);
	}
	assert_true(capacity >= end - first && capacity < 2 * (end - first) + 64);
	free(ring);
}

// test that the hash is the published one
static void the_hash_is_published(void **state)
{
	assert_true(hash_bytes(HASH_START, "foobar", 6)
		== UINT64_C(0x85944171f73967e8));
	assert_true(hash_bytes(hash_bytes(HASH_START, "foo", 3), "bar", 3)
		== UINT64_C(0x85944171f73967e8));
	assert_true(hash_bytes(HASH_START, NULL, 0) == HASH_START);
}

TESTS(
	cmocka_unit_test(a_list_keeps_its_elements),
	cmocka_unit_test(a_ring_keeps_what_is_between_its_ends),
	cmocka_unit_test(the_hash_is_published))
