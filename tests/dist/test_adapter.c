/* data parallelism through the library's interface */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "dist/adapter.h"
#include "dist/link.h"
#include "tests/base/program.h"

static int free_port(void)
{
	Meeting here = meeting_here();
	int port = here.port;
	meeting_close(&here);
	return port;
}

// test that the library refuses mistakes
static void there_is_no_job(void **state)
{
	float x = 1;
	int32_t n = 0;
	assert_int_equal(dist_close(), DIST_OK);
	assert_int_equal(dist_broadcast(&x, 4, 0), DIST_OUTSIDE);
	assert_int_equal(dist_reducer_new(&n, &(int64_t){ 1 }, 1, DIST_FLAT, 1),
		DIST_OUTSIDE);
	assert_int_equal(dist_reducer_buckets(0, &n), DIST_OUTSIDE);
	assert_int_equal(dist_reducer_ready(0, 0, &x, 1, DIST_FP32), DIST_OUTSIDE);
	assert_int_equal(dist_reducer_wait(0), DIST_OUTSIDE);
	assert_int_equal(dist_reducer_mean(0, 0, &x, 1, DIST_FP32), DIST_OUTSIDE);
	assert_int_equal(dist_owners(&n, &(int64_t){ 1 }, 1, &(int64_t){ 0 }),
		DIST_OUTSIDE);
	assert_int_equal(dist_range(1, &(int64_t){ 0 }, &(int64_t){ 0 }),
		DIST_OUTSIDE);
	assert_int_equal(dist_gather(&n, &x, 1, DIST_FP32), DIST_OUTSIDE);
	assert_int_equal(dist_gather_in_place(&n, &x, 1, DIST_FP32), DIST_OUTSIDE);
	assert_int_equal(dist_gather_in_place(&n, NULL, 1, DIST_FP32), DIST_OUTSIDE);
	assert_int_equal(dist_reduce_scatter(&n, &x, 1, DIST_FP32), DIST_OUTSIDE);
	assert_int_equal(dist_take(0, &x, 1), DIST_OUTSIDE);
	assert_int_equal(dist_place(-1, NULL), DIST_OUTSIDE);
	for (int32_t i = -1; i < 14; i++)
		assert_true(strlen(dist_status(i)) > 3);
}

// test that there is no such job
static void no_such_job(void **state)
{
	static const struct { int rank, ranks, port, limit; } bad[] = {
		{ -1, 2, 999, 9 }, { 2, 2, 999, 9 }, { 0, 0, 999, 9 }, { 0, 1, 0, 9 },
		{ 0, 1, 65536, 9 }, { 0, 1, 999, 0 } };
	char longer[257] = "";                   /* a name has 255 letters at most */
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(dist_open(bad[i].rank, bad[i].ranks, "127.0.0.1",
			bad[i].port, bad[i].limit), DIST_BAD_JOB);
	memset(longer, '1', sizeof longer - 1);
	assert_int_equal(dist_open(0, 1, longer, 999, 9), DIST_BAD_JOB);
	longer[255] = '\0';
	assert_int_equal(dist_open(0, 1, longer, free_port(), 9), DIST_OK);
	assert_int_equal(dist_close(), DIST_OK);
	assert_int_equal(dist_open(0, 1, NULL, 999, 9), DIST_BAD_JOB);
}

static void ranges_have_a_status(const float *x, float *y)
{
	const int64_t counts[] = { 2, 0, 3 }, negative[] = { 2, -1 };
	// try wrong ranges
	int64_t loads[] = { 5 }, from, to;
	int32_t owners[3], q = 7;
	uint16_t half[] = { 0x3C00, 0x7F81, 0xFFFF }, low[3];
	assert_int_equal(dist_owners(owners, counts, 0, loads), DIST_BAD_COUNT);
	assert_int_equal(dist_owners(owners, negative, 2, loads), DIST_BAD_COUNT);
	assert_int_equal(dist_owners(NULL, counts, 3, loads), DIST_NULL);
	assert_int_equal(dist_owners(owners, NULL, 3, loads), DIST_NULL);
	assert_int_equal(dist_owners(owners, counts, 3, NULL), DIST_NULL);
	assert_int_equal(dist_owners(owners, counts, 3, &(int64_t){ -1 }),
		DIST_BAD_COUNT);
	assert_int_equal(dist_owners(owners, counts, 3, loads), DIST_OK);
	assert_true(owners[0] == 0 && owners[2] == 0 && loads[0] == 10);
	assert_int_equal(dist_range(-1, &from, &to), DIST_BAD_COUNT);
	assert_int_equal(dist_range(3, NULL, &to), DIST_NULL);
	assert_int_equal(dist_range(3, &from, NULL), DIST_NULL);
	assert_int_equal(dist_range(3, &from, &to), DIST_OK);
	assert_true(from == 0 && to == 3);
	assert_int_equal(dist_gather(NULL, x, 3, DIST_FP32), DIST_NULL);
	assert_int_equal(dist_gather(&q, NULL, 3, DIST_FP32), DIST_NULL);
	assert_int_equal(dist_gather(&q, x, 0, DIST_FP32), DIST_BAD_COUNT);
	assert_int_equal(dist_gather(&q, x, INT64_MAX, DIST_FP32), DIST_BAD_COUNT);
	assert_int_equal(dist_reduce_scatter(&q, x, INT64_MAX / 4 + 1, DIST_FP32),
		DIST_BAD_COUNT);
	assert_int_equal(dist_gather(&q, x, 3, 3), DIST_BAD_TYPE);
	assert_int_equal(dist_gather(&q, x, 3, -1), DIST_BAD_TYPE);
	assert_int_equal(dist_gather_in_place(&q, NULL, 3, DIST_FP32), DIST_NULL);
	assert_int_equal(dist_gather_in_place(NULL, y, 3, DIST_FP32), DIST_NULL);
	assert_int_equal(dist_gather_in_place(&q, y, 3, 3), DIST_BAD_TYPE);
	assert_int_equal(dist_reduce_scatter(NULL, x, 3, DIST_FP32), DIST_NULL);
	assert_int_equal(dist_reduce_scatter(&q, NULL, 3, DIST_FP32), DIST_NULL);
	assert_int_equal(dist_reduce_scatter(&q, x, -3, DIST_FP32), DIST_BAD_COUNT);
	assert_int_equal(dist_reduce_scatter(&q, x, 3, 3), DIST_BAD_TYPE);
	assert_int_equal(dist_take(-1, y, 3), DIST_OUTSIDE);
	assert_int_equal(dist_take(0, y, 3), DIST_OUTSIDE);
	assert_int_equal(q, 7);
	assert_int_equal(dist_gather(&q, half, 3, DIST_FP16), DIST_OK);
	assert_int_equal(dist_take(q, low, 2), DIST_BAD_COUNT);
	assert_int_equal(dist_take(q, low, -1), DIST_BAD_COUNT);
	assert_int_equal(dist_take(q, NULL, 3), DIST_NULL);
	assert_int_equal(dist_take(q, low, 3), DIST_OK);
	assert_true(low[0] == half[0] && (low[1] | 0x40) == (half[1] | 0x40)
		&& low[2] == half[2]);
	assert_int_equal(dist_take(q, low, 3), DIST_OUTSIDE);
	assert_int_equal(dist_gather_in_place(&q, low, 3, DIST_BF16), DIST_OK);
	assert_int_equal(dist_take(q, low, 3), DIST_OK);
	assert_true(low[0] == half[0] && (low[1] | 0x40) == (half[1] | 0x40)
		&& low[2] == half[2]);
	assert_int_equal(dist_reduce_scatter(&q, half, 1, DIST_FP16), DIST_OK);
	assert_int_equal(dist_take(q, y, 1), DIST_OK);
	assert_true(y[0] == 1);
	assert_int_equal(dist_gather(&q, x, 3, DIST_FP32), DIST_OK);    /* never taken */
}

/* of reducer r, whose array 2 has the means x, and 0 zeros */
static void several_means(int32_t r, const float x[3])
{
	float y[3] = { 0 }, z[4] = { 9, 9, 9, 9 };
	// ask for several means
	assert_int_equal(dist_reducer_means(r, 2, (int32_t[]){ 2, 0 },
		(void *[]){ y, z }, (int32_t[]){ DIST_FP32, DIST_FP32 }), DIST_OK);
	assert_true(memcmp(x, y, sizeof y) == 0 && z[0] == 0 && z[1] == 0 && z[2] == 9);
	assert_int_equal(dist_reducer_means(r, 1, (int32_t[]){ 3 }, (void *[]){ y },
		(int32_t[]){ DIST_FP32 }), DIST_BAD_INDEX);
	assert_int_equal(dist_reducer_means(r, 1, (int32_t[]){ 2 }, (void *[]){ NULL },
		(int32_t[]){ DIST_FP32 }), DIST_NULL);
	assert_int_equal(dist_reducer_means(r, 1, (int32_t[]){ 2 }, (void *[]){ y },
		(int32_t[]){ 3 }), DIST_BAD_TYPE);
	assert_int_equal(dist_reducer_means(r, 1, NULL, (void *[]){ y },
		(int32_t[]){ 0 }), DIST_NULL);
	assert_int_equal(dist_reducer_means(r + 1, 0, NULL, NULL, NULL), DIST_OUTSIDE);
	assert_int_equal(dist_reducer_means(r, 0, NULL, NULL, NULL), DIST_OK);
}

static void mistakes_have_a_status(void **state)
{
	const int64_t counts[] = { 2, 0, 3 }, negative[] = { 2, -1 }, nothing = 0;
	float x[3] = { 1, 2, 3 }, y[3] = { 0 };
	int32_t r = -1, port = free_port();
	for (int turn = 0; turn < 2; turn++) {          /* a job can follow a job */
		assert_int_equal(dist_open(0, 1, "127.0.0.1", port, 9), DIST_OK);
		assert_int_equal(dist_open(0, 1, "127.0.0.1", port, 9), DIST_INSIDE);
		// try wrong reducers
		assert_int_equal(dist_place(9999, NULL), DIST_NO_GPU);     /* the host is left */
		assert_int_equal(dist_broadcast(x, -1, 0), DIST_BAD_COUNT);
		assert_int_equal(dist_broadcast(x, 4, 1), DIST_BAD_INDEX);
		assert_int_equal(dist_broadcast(NULL, 4, 0), DIST_NULL);
		assert_int_equal(dist_broadcast(NULL, 0, 0), DIST_OK);
		assert_int_equal(dist_reducer_new(&r, counts, 3, 4, 1), DIST_BAD_KIND);
		assert_int_equal(dist_reducer_new(&r, counts, 3, -1, 1), DIST_BAD_KIND);
		assert_int_equal(dist_reducer_new(&r, counts, 3, DIST_BUCKETED, 0.0 / 0.0),
			DIST_BAD_KIND);
		assert_int_equal(dist_reducer_new(&r, negative, 2, DIST_FLAT, 1), DIST_BAD_COUNT);
		assert_int_equal(dist_reducer_new(&r, &nothing, 1, DIST_FLAT, 1), DIST_BAD_COUNT);
		assert_int_equal(dist_reducer_new(&r, NULL, 3, DIST_FLAT, 1), DIST_NULL);
		assert_int_equal(dist_reducer_new(&r, counts, 3, DIST_BUCKETED, 1), DIST_OK);
		// try wrong steps
		assert_int_equal(dist_reducer_ready(r + 1, 0, x, 2, DIST_FP32), DIST_OUTSIDE);
		assert_int_equal(dist_reducer_ready(r, 3, x, 2, DIST_FP32), DIST_BAD_INDEX);
		assert_int_equal(dist_reducer_ready(r, -1, x, 2, DIST_FP32), DIST_BAD_INDEX);
		assert_int_equal(dist_reducer_ready(r, 0, x, 3, DIST_FP32), DIST_BAD_COUNT);
		assert_int_equal(dist_reducer_ready(r, 0, x, 2, 3), DIST_BAD_TYPE);
		assert_int_equal(dist_reducer_ready(r, 0, NULL, 2, DIST_FP32), DIST_NULL);
		assert_int_equal(dist_reducer_mean(r, 0, y, 2, DIST_FP32), DIST_EARLY);
		for (int step = 0; step < 2; step++) {
			assert_int_equal(dist_reducer_ready(r, 2, x, 3, DIST_FP32), DIST_OK);
			assert_int_equal(dist_reducer_ready(r, 2, x, 3, DIST_FP32), DIST_TWICE);
			assert_int_equal(dist_reducer_mean(r, 2, y, 3, DIST_FP32), DIST_EARLY);
			assert_int_equal(dist_reducer_ready(r, 1, NULL, 0, DIST_FP32), DIST_OK);
			assert_int_equal(dist_reducer_wait(r), DIST_OK);
			assert_int_equal(dist_reducer_mean(r, 2, y, 3, DIST_FP32), DIST_OK);
			assert_memory_equal(x, y, sizeof x);
			assert_int_equal(dist_reducer_mean(r, 0, y, 2, DIST_FP32), DIST_OK);
			assert_true(y[0] == 0 && y[1] == 0);            /* it was not given */
		}
		several_means(r, x);
		uint16_t half[] = { 0x3C00, 0xC001 }, mean[2];
		assert_int_equal(dist_reducer_ready(r, 0, half, 2, DIST_FP16), DIST_OK);
		assert_int_equal(dist_reducer_wait(r), DIST_OK);
		assert_int_equal(dist_reducer_mean(r, 0, mean, 2, DIST_FP16), DIST_OK);
		assert_memory_equal(half, mean, sizeof half);
		ranges_have_a_status(x, y);
		assert_int_equal(dist_close(), DIST_OK);
		assert_int_equal(dist_reducer_wait(r), DIST_OUTSIDE);
	}
}

// test means over ranks
enum { ARRAYS = 5, MOST = 700, STEPS = 3 };
static const int64_t lengths[ARRAYS] = { 1, 700, 0, 33, 256 };

/* a whole number */
static float value(int rank, int step, int array, int64_t i)
{
	return (float)((rank + 1) * (array + 1) * (step + 1) + i % 17);
}

static bool left_out(int rank, int step, int array)
{
	return step == 1 && (rank + array) % 3 == 0;
}

static bool mean_is(const float *x, int ranks, int step, int array)
{
	for (int64_t i = 0; i < lengths[array]; i++) {
		float sum = 0;
		for (int r = 0; r < ranks; r++)
			sum += left_out(r, step, array) ? 0 : value(r, step, array, i);
		if (!(x[i] == sum / (float)ranks))
			return false;
	}
	return true;
}

static float x[MOST];                   /* what a rank gives and gets */

static bool step_is_right(int32_t reducer, int rank, int ranks, int step)
{
	bool right = true;
	for (int i = 0; i < ARRAYS; i++) {
		int array = (i * 2 + rank) % ARRAYS;
		for (int64_t j = 0; j < lengths[array]; j++)
			x[j] = value(rank, step, array, j);
		if (!left_out(rank, step, array))
			right &= dist_reducer_ready(reducer, array, x, lengths[array],
				DIST_FP32) == DIST_OK;
		memset(x, 0xFF, sizeof x);              /* it was copied */
	}
	right &= dist_reducer_wait(reducer) == DIST_OK;
	for (int array = 0; array < ARRAYS; array++)
		right &= dist_reducer_mean(reducer, array, x, lengths[array], DIST_FP32)
			== DIST_OK && mean_is(x, ranks, step, array);
	return right;
}

static bool rank_is_right(int rank, int ranks, int port)
{
	enum { SENDING = 4 };                    /* arrays that hold something */
	static const struct { DistKind kind; double mb; int buckets; } kinds[] = {
		{ DIST_NAIVE, 1, SENDING }, { DIST_FLAT, 1, 1 },
		{ DIST_OVERLAP, 1, SENDING }, { DIST_BUCKETED, 1, 1 },
		{ DIST_BUCKETED, 1e-6, SENDING }, { DIST_BUCKETED, 0.0012, 3 } };
	char text[8] = "       ";
	int32_t reducer, buckets;
	bool right = dist_open(rank, ranks, "127.0.0.1", port, 20) == DIST_OK;
	if (rank == ranks - 1)
		memcpy(text, "7 bytes", 7);
	right &= dist_broadcast(text, 7, ranks - 1) == DIST_OK
		&& strcmp(text, "7 bytes") == 0;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		right &= dist_reducer_new(&reducer, lengths, ARRAYS, kinds[k].kind,
			kinds[k].mb) == DIST_OK
			&& dist_reducer_buckets(reducer, &buckets) == DIST_OK;
		right &= buckets == kinds[k].buckets;
		for (int step = 0; step < STEPS; step++)
			right &= step_is_right(reducer, rank, ranks, step);
	}
	return right & (dist_close() == DIST_OK);
}

// fork ranks and see that each is right
static void every_rank_is_right(bool (*is_right)(int rank, int ranks, int port))
{
	for (int ranks = 1; ranks <= 4; ranks++) {
		int port = free_port(), status;
		for (int rank = 0; rank < ranks; rank++)
			if (fork() == 0)
				_exit(is_right(rank, ranks, port) ? 0 : 1);
		for (int rank = 0; rank < ranks; rank++) {
			assert_true(wait(&status) > 0);
			assert_int_equal(status, 0);
		}
	}
}

static void ranks_agree_on_means(void **state)
{
	every_rank_is_right(rank_is_right);
}

// test ranges over ranks
static bool gathers(int rank, int ranks, const int64_t *n, int arrays)
{
	int32_t requests[ARRAYS];
	int64_t begin, end;
	bool right = true;
	float *whole[ARRAYS];
	for (int i = 0; i < arrays; i++) {
		whole[i] = need(malloc(n[i] * sizeof *x));
		right &= dist_range(n[i], &begin, &end) == DIST_OK;
		for (int64_t j = begin; j < end; j++)
			whole[i][j] = x[j - begin] = value(0, 0, i, j);
		right &= (i % 2 ? dist_gather_in_place(&requests[i], whole[i], n[i],
			DIST_FP32) : dist_gather(&requests[i], begin < end ? x : NULL, n[i],
			DIST_FP32)) == DIST_OK;
		memset(x, 0xFF, sizeof x);              /* it was copied */
	}
	for (int i = arrays - 1; i >= 0; i--) {
		right &= dist_take(requests[i], whole[i], n[i]) == DIST_OK;
		for (int64_t j = 0; j < n[i]; j++)
			right &= whole[i][j] == value(0, 0, i, j);
		free(whole[i]);
	}
	return right;
}

// scatter sums of arrays
static bool scatters(int rank, int ranks, const int64_t *n, int arrays)
{
	int32_t requests[ARRAYS];
	int64_t begin, end;
	bool right = true;
	for (int i = 0; i < arrays; i++) {
		for (int64_t j = 0; j < n[i]; j++)
			x[j] = (float)ranks * value(rank, 0, i, j);
		right &= dist_reduce_scatter(&requests[i], x, n[i], DIST_FP32) == DIST_OK;
	}
	for (int i = 0; i < arrays; i++) {
		right &= dist_range(n[i], &begin, &end) == DIST_OK;
		right &= dist_take(requests[i], x, end - begin) == DIST_OK;
		for (int64_t j = begin; j < end; j++) {
			float sum = 0;
			for (int r = 0; r < ranks; r++)
				sum += value(r, 0, i, j);
			right &= x[j - begin] == sum;
		}
	}
	return right;
}

// fork ranks that gather and scatter
static bool ranges_are_right(int rank, int ranks, int port)
{
	static const int64_t n[] = { 1, 700, 33, 2, 256 };
	int64_t loads[8] = { 0 };
	int32_t owners[ARRAYS];
	bool right = dist_open(rank, ranks, "127.0.0.1", port, 20) == DIST_OK;
	right &= dist_owners(owners, n, ARRAYS, loads) == DIST_OK;
	right &= owners[1] == 0 && owners[4] == (ranks > 1);
	for (int turn = 0; turn < 3; turn++)
		right &= gathers(rank, ranks, n, ARRAYS)
			&& scatters(rank, ranks, n, ARRAYS);
	return right & (dist_close() == DIST_OK);
}

static void ranks_gather_and_scatter(void **state)
{
	every_rank_is_right(ranges_are_right);
}

TESTS(
	/* first: a process that has threads cannot be forked */
	cmocka_unit_test(ranks_agree_on_means),
	cmocka_unit_test(ranks_gather_and_scatter),
	cmocka_unit_test(there_is_no_job),
	cmocka_unit_test(no_such_job),
	cmocka_unit_test(mistakes_have_a_status))
