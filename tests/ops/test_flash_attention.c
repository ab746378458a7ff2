/* attention through the library's interface */
#include "ops/flash_attention.h"
#include "tests/ops/attention_reference.h"

enum { B = 2, HEADS = 3, QUERIES = 37, KEYS = 53, SIZE = 24 };

static FlashShape shape_of(bool causal)
{
	return (FlashShape){ .batch = B, .heads = HEADS, .seqlen_q = QUERIES,
		.seqlen_k = KEYS, .head_size = SIZE, .causal = causal };
}

/* (batch, heads, rows, SIZE), dense */
static FlashArray array(real *at, int rows)
{
	return (FlashArray){ at, HEADS * rows * SIZE, SIZE, rows * SIZE };
}

static void fill(real *x, int n, int seed)
{
	for (int i = 0; i < n; i++)
		x[i] = (real)sin(1.7 * i + seed);
}

enum { NQ = B * HEADS * QUERIES * SIZE, NK = B * HEADS * KEYS * SIZE };
static real q[NQ], k[NK], v[NK], o[NQ], dO[NQ], dq[NQ], dk[NK], dv[NK];
static float L[B * HEADS * QUERIES];

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

static void gradients_are_differences(void **state)
{
	(void)state;
	for (int causal = 0; causal < 2; causal++) {
		FlashShape s = shape_of(causal);
		fill(q, NQ, 1), fill(k, NK, 2), fill(v, NK, 3), fill(dO, NQ, 4);
		assert_int_equal(flash_attention_forward(&s, array(o, QUERIES), L,
			array(q, QUERIES), array(k, KEYS), array(v, KEYS)), FLASH_OK);
		assert_int_equal(flash_attention_backward(&s, array(dq, QUERIES),
			array(dk, KEYS), array(dv, KEYS), array(q, QUERIES), array(k, KEYS),
			array(v, KEYS), array(o, QUERIES), L, array(dO, QUERIES)), FLASH_OK);
		const struct { real *x, *dx; int at; } places[] = { { q, dq, 77 },
			{ k, dk, 131 }, { v, dv, 411 }, { q, dq, NQ - 1 }, { v, dv, 0 } };
		for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
			double h = 1.0 / 64, slope = (moved(&s, places[i].x, places[i].at, h)
				- moved(&s, places[i].x, places[i].at, -h)) / (2 * h);
			assert_true(fabs(slope - places[i].dx[places[i].at]) < 2e-3);
		}
	}
}

static void bad_arguments_are_refused(void **state)
{
	(void)state;
	const FlashArray Q = array(q, QUERIES), K = array(k, KEYS), none = { 0 };
	FlashShape s = shape_of(true), bad[] = { s, s, s, s, s, s };
	bad[0].seqlen_k = 0, bad[1].scale = NAN, bad[4].seqlen_q = 1 << 23;
	bad[2].type = 9, bad[3].type = FLASH_BF16, bad[5].batch = INT32_MAX;
	const int32_t status[] = { FLASH_BAD_SHAPE, FLASH_BAD_SHAPE, FLASH_BAD_TYPE,
		FLASH_BAD_TYPE, FLASH_BAD_SHAPE, FLASH_BAD_SHAPE };
	o[5] = 42;
	for (int i = 0; i < 6; i++)
		assert_int_equal(flash_attention_forward(&bad[i], array(o, QUERIES), L, Q,
			K, K), status[i]);
	assert_int_equal(flash_attention_forward(&s, array(o, QUERIES), NULL, Q, K,
		K), FLASH_NULL);
	assert_int_equal(flash_attention_forward(&s, array(o, QUERIES), L, none, K,
		K), FLASH_NULL);
	assert_true(o[5] == 42);
	for (int32_t i = -1; i < 9; i++)
		assert_true(strlen(flash_attention_status(i)) > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(gradients_are_differences),
		checked(bad_arguments_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
