/* attention through the library's interface */
#include <pthread.h>

#include "ops/flash_attention.h"
#include "tests/ops/attention_reference.h"

enum { B = 2, HEADS = 4, SHARED = 2, QUERIES = 37, KEYS = 53, SIZE = 24 };

// describe a small shape and its arrays
static FlashShape shape_of(FlashMask mask)
{
	return (FlashShape){ .batch = B, .heads = HEADS, .kv_heads = SHARED,
		.seqlen_q = QUERIES, .seqlen_k = KEYS, .head_size = SIZE,
		.causal = mask };
}

/* (batch, heads, rows, SIZE), dense */
static FlashArray array(real *at, int rows)
{
	int heads = rows == KEYS ? SHARED : HEADS;
	return (FlashArray){ at, heads * rows * SIZE, SIZE, rows * SIZE };
}

static void fill(real *x, int n, int seed)
{
	for (int i = 0; i < n; i++)
		x[i] = (real)sin(1.7 * i + seed);
}

enum { NQ = B * HEADS * QUERIES * SIZE, NK = B * SHARED * KEYS * SIZE };
static real q[NQ], k[NK], v[NK], o[NQ], dO[NQ], dq[NQ], dk[NK], dv[NK];
static float L[B * HEADS * QUERIES];

// hold gradients against differences of the forward pass
/* sum of dO O, in double precision, with element `at` of x moved by h */
static double moved(const FlashShape *s, real *x, int at, double h)
{
	static real scratch[NQ];
	static float ignored[B * HEADS * QUERIES];
	real kept = x[at];
	x[at] += (real)h;
	assert_int_equal(flash_attention_forward(s, array(scratch, QUERIES), ignored,
		array(q, QUERIES), array(k, KEYS), array(v, KEYS)), FLASH_OK);
	x[at] = kept;
	double sum = 0;
	for (int i = 0; i < NQ; i++)
		sum += (double)dO[i] * scratch[i];
	return sum;
}

/* of inputs that are always the same */
static void both_passes(const FlashShape *s)
{
	fill(q, NQ, 1), fill(k, NK, 2), fill(v, NK, 3), fill(dO, NQ, 4);
	assert_int_equal(flash_attention_forward(s, array(o, QUERIES), L,
		array(q, QUERIES), array(k, KEYS), array(v, KEYS)), FLASH_OK);
	assert_int_equal(flash_attention_backward(s, array(dq, QUERIES),
		array(dk, KEYS), array(dv, KEYS), array(q, QUERIES), array(k, KEYS),
		array(v, KEYS), array(o, QUERIES), L, array(dO, QUERIES)), FLASH_OK);
}

static void gradients_are_differences(void **state)
{
	for (int mask = FLASH_FULL; mask <= FLASH_CAUSAL_BOTTOM_RIGHT; mask++) {
		FlashShape s = shape_of(mask);
		both_passes(&s);
		const struct { real *x, *dx; int at; } places[] = { { q, dq, 77 },
			{ k, dk, 131 }, { v, dv, 411 }, { q, dq, NQ - 1 }, { v, dv, 0 } };
		for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
			double h = 1.0 / 64, slope = (moved(&s, places[i].x, places[i].at, h)
				- moved(&s, places[i].x, places[i].at, -h)) / (2 * h);
			assert_true(fabs(slope - places[i].dx[places[i].at]) < 2e-3);
		}
	}
}

// test: calls from two threads
static void *call_often(void *o)
{
	static float sums[B * HEADS * QUERIES];      /* alike for both */
	const FlashShape s = shape_of(FLASH_FULL);
	for (int i = 0; i < 50; i++)
		if (flash_attention_forward(&s, array(o, QUERIES), sums,
			array(q, QUERIES), array(k, KEYS), array(v, KEYS)) != FLASH_OK)
			return NULL;
	return o;
}

static void threads_take_turns(void **state)
{
	static real o2[NQ], o3[NQ];
	pthread_t thread;
	fill(q, NQ, 5), fill(k, NK, 6), fill(v, NK, 7);
	assert_non_null(call_often(o));
	assert_int_equal(pthread_create(&thread, NULL, call_often, o2), 0);
	assert_non_null(call_often(o3));
	void *done = NULL;
	assert_int_equal(pthread_join(thread, &done), 0);
	assert_ptr_equal(done, o2);
	assert_memory_equal(o, o2, sizeof o);
	assert_memory_equal(o, o3, sizeof o);
}

// refuse bad arguments
static void bad_arguments_are_refused(void **state)
{
	const FlashArray Q = array(q, QUERIES), K = array(k, KEYS), none = { 0 };
	FlashShape s = shape_of(FLASH_CAUSAL), bad[] = { s, s, s, s, s, s, s, s, s };
	bad[0].seqlen_k = 0, bad[1].scale = NAN, bad[4].seqlen_q = 1 << 23;
	bad[2].type = 9, bad[3].type = FLASH_BF16, bad[5].batch = INT32_MAX;
	bad[6].kv_heads = 3, bad[7].causal = 3, bad[8].head_size = 1LL << 31;
	const int32_t status[] = { FLASH_BAD_SHAPE, FLASH_BAD_SHAPE, FLASH_BAD_TYPE,
		FLASH_BAD_TYPE, FLASH_BAD_SHAPE, FLASH_BAD_SHAPE, FLASH_BAD_SHAPE,
		FLASH_BAD_SHAPE, FLASH_BAD_SHAPE };
	o[5] = 42;
	for (int i = 0; i < 9; i++)
		assert_int_equal(flash_attention_forward(&bad[i], array(o, QUERIES), L, Q,
			K, K), status[i]);
	assert_int_equal(flash_attention_forward(&s, array(o, QUERIES), NULL, Q, K,
		K), FLASH_NULL);
	assert_int_equal(flash_attention_forward(&s, array(o, QUERIES), L, none, K,
		K), FLASH_NULL);
	assert_int_equal(flash_attention_forward(NULL, array(o, QUERIES), L, Q, K,
		K), FLASH_NULL);
	for (int number = -1; number < 128; number += 64) {
		s.on_gpu = 1, s.gpu = number;
		assert_int_equal(flash_attention_forward(&s, array(o, QUERIES), L, Q, K,
			K), FLASH_NO_GPU);
	}
	assert_true(o[5] == 42);
	for (int32_t i = -1; i < 9; i++)
		assert_true(strlen(flash_attention_status(i)) > 3);
}

static void rows_that_overlap_are_refused(void **state)
{
	FlashShape s = shape_of(FLASH_FULL);
	fill(q, NQ, 5), fill(k, NK, 6), fill(v, NK, 7);
	for (int i = 0; i < 2; i++) {
		FlashArray K = array(k, KEYS);
		K.row = i ? s.head_size - 1 : 1LL << 31;
		assert_int_equal(flash_attention_forward(&s, array(o, QUERIES), L,
			array(q, QUERIES), K, array(v, KEYS)), FLASH_BAD_SHAPE);
	}
	/* the stride of one row is of no use */
	static real same[NQ];
	FlashArray Q = array(q, QUERIES);
	s.seqlen_q = 1;
	assert_int_equal(flash_attention_forward(&s, array(o, QUERIES), L, Q,
		array(k, KEYS), array(v, KEYS)), FLASH_OK);
	Q.row = 0;
	assert_int_equal(flash_attention_forward(&s, array(same, QUERIES), L, Q,
		array(k, KEYS), array(v, KEYS)), FLASH_OK);
	assert_memory_equal(o, same, s.head_size * sizeof *o);
}

static void sequences_fill_their_rows(void **state)
{
	static const int32_t starts[][3] = { { 0, 3, QUERIES }, { 1, 3, QUERIES },
		{ 0, 3, QUERIES - 1 }, { 0, QUERIES + 1, QUERIES }, { 0, -1, QUERIES },
		{ 0, 0, QUERIES } };
	fill(q, NQ, 5);
	for (int i = 0; i < 6; i++) {
		FlashShape s = shape_of(FLASH_FULL);
		s.batch = 2, s.seqlen_q = s.total_q = QUERIES, s.seqlen_k = s.total_k
			= QUERIES;
		s.cu_seqlens_k = starts[0], s.cu_seqlens_q = starts[i];
		assert_int_equal(flash_attention_forward(&s, array(o, QUERIES), L,
			array(q, QUERIES), array(q, QUERIES), array(q, QUERIES)),
			i % 5 ? FLASH_BAD_SHAPE : FLASH_OK);
		s.seqlen_q = QUERIES - 4;                /* less than the longest */
		assert_int_equal(flash_attention_forward(&s, array(o, QUERIES), L,
			array(q, QUERIES), array(q, QUERIES), array(q, QUERIES)),
			FLASH_BAD_SHAPE);
	}
}

TESTS(
	checked(gradients_are_differences),
	checked(threads_take_turns),
	checked(bad_arguments_are_refused),
	checked(rows_that_overlap_are_refused),
	checked(sequences_fill_their_rows))
