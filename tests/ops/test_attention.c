/* FlashAttention, of any shape, against its formulas */
#include <omp.h>

#include "ops/naive_attention.h"
#include "tests/ops/attention_reference.h"

// list problems and tiles
static const Problem problems[] = {
	{ 1, 1, 1, 1, 1, true, 1, 0, false, false },
	{ 1, 2, 17, 17, 3, true, 1, 0, false, false },
	{ 2, 3, 65, 65, 16, true, 1, 5, true, true },
	{ 1, 2, 64, 64, 8, false, 1, 0, true, false },
	{ 2, 1, 33, 100, 16, true, 1, 1, false, true },
	{ 1, 2, 100, 33, 16, true, 1, 0, false, false },
	{ 1, 1, 33, 100, 16, false, 1, 3, true, false },
	{ 1, 1, 70, 70, 16, true, 200, 0, false, false },
	{ 2, 3, 37, 37, 16, true, 1, 0, false, true },
	{ 2, 6, 65, 40, 16, true, 1, 3, false, true, .group = 3 },
	{ 1, 4, 33, 100, 8, false, 1, 0, true, false, .group = 4 },
	{ 2, 1, 33, 100, 16, true, 1, 1, false, true, .bottom_right = true },
	{ 1, 4, 20, 70, 16, true, 1, 0, true, true, 2, true },
	{ 1, 2, 100, 33, 16, true, 1, 0, false, false, .bottom_right = true },
};
/* keys that are lost: few, as many as a tile has, all but one, and all */
static const Problem lost_keys[] = {
	{ 1, 2, 40, 200, 16, false, 1, 0, false, true, .lost = 1 },
	{ 1, 2, 40, 200, 16, false, 1, 3, true, false, .lost = 64 },
	{ 1, 1, 33, 200, 8, false, 1, 0, false, false, .lost = 65 },
	{ 1, 1, 5, 200, 16, false, 1, 0, false, true, .lost = 199 },
	{ 1, 1, 17, 200, 16, false, 1, 0, false, true, .lost = 200 },
	{ 2, 2, 70, 70, 16, true, 1, 0, false, true, .lost = 5 },
	{ 1, 1, 131, 130, 16, true, 1, 0, false, false, .lost = 129 },
};
static const size_t tiles[][2] = { { 16, 16 }, { 64, 64 }, { 16, 48 },
	{ 33, 17 }, { 128, 20 }, { 1, 128 } };
enum { NPROBLEMS = sizeof problems / sizeof *problems,
	NLOST = sizeof lost_keys / sizeof *lost_keys,
	NTILES = sizeof tiles / sizeof *tiles };

// test that the forward pass follows the formulas
static void forward_follows_the_formulas(void **state)
{
	for (int i = 0; i < NPROBLEMS * NTILES; i++) {
		const Problem *p = &problems[i / NTILES];
		const size_t *tile = tiles[i % NTILES];
		Array at[ARRAYS], L = poisoned(p->B * p->H * p->seqlen_q);
		Reference r = reference_of(p, TYPE_REAL, at);
		char label[100];
		cpu_attention_forward_tiled(NULL, attention_on(p, at, L), tile[0],
			tile[1]);
		snprintf(label, sizeof label, "problem %d, tiles of %zu x %zu",
			i / NTILES, tile[0], tile[1]);
		expect_outputs(label, p, &r, at, DQ, L, 16 * EPS, 16 * EPS);
		assert_int_equal(release(NULL), 0);
	}
}

// test that both passes follow the formulas
static void tiles_follow_the_formulas(void **state)
{
	for (int i = 0; i < NPROBLEMS * NTILES; i++) {
		const Problem *p = &problems[i / NTILES];
		const size_t *tile = tiles[i % NTILES];
		Array at[ARRAYS], angles[2], L = poisoned(p->B * p->H * p->seqlen_q);
		fill_angles(p, angles);
		Reference r = reference_of(p, TYPE_REAL, at);
		Attention a = attention_on(p, at, L);
		char label[100];
		cpu_attention_forward_tiled(NULL, a, tile[0], tile[1]);
		cpu_attention_backward_tiled(NULL, a, gradient_on(p, at, angles), tile[0],
			tile[1]);
		snprintf(label, sizeof label, "problem %d, tiles of %zu x %zu",
			i / NTILES, tile[0], tile[1]);
		expect_attention(label, p, &r, at, L, 16 * EPS, 16 * EPS);
		assert_int_equal(release(NULL), 0);
	}
}

// test that naive attention follows the formulas
static void naive_attention_follows_the_formulas(void **state)
{
	Device *d = device_open("cpu");
	int tried = 0;
	for (int i = 0; i < 2 * NPROBLEMS; i++) {
		const Problem *p = &problems[i / 2];
		Type type = i % 2 ? BF16 : TYPE_REAL;
		size_t n = p->B * p->H * p->seqlen_q;
		Array at[ARRAYS], angles[2], L = poisoned(n);
		fill_angles(p, angles);
		Reference r = reference_of(p, type, at);
		Attention a = attention_on(p, at, L);
		AttentionGradient g = gradient_on(p, at, angles);
		a.P = poisoned(n * p->seqlen_k);
		if (naive_attention_supports(d, &a, &g)) {
			naive_attention_forward(d, a);
			naive_attention_backward(d, a, g);
			for (size_t k = 0; k < n; k++)
				reals(L)[k] = (real)r.L[k];
			double bound = i % 2 ? 8e-3 : 16 * EPS;
			expect_attention("naive", p, &r, at, L, bound, bound);
			tried++;
		}
		assert_int_equal(release(NULL), 0);
	}
	assert_true(tried >= 8);
	device_close(&d);
}

// test scores of minus infinity
static void try_lost_keys(double far, int end)
{
	for (int i = 0; i < NLOST * NTILES; i++) {
		Problem p = lost_keys[i / NTILES];
		const size_t *tile = tiles[i % NTILES];
		p.far = far;
		Array at[ARRAYS], angles[2], L = poisoned(p.B * p.H * p.seqlen_q);
		fill_angles(&p, angles);
		Reference r = reference_of(&p, TYPE_REAL, at);
		Attention a = attention_on(&p, at, L);
		char label[100];
		snprintf(label, sizeof label, "%zu lost keys of %g, tiles of %zu x %zu",
			p.lost, far, tile[0], tile[1]);
		cpu_attention_forward_tiled(NULL, a, tile[0], tile[1]);
		if (end > DQ)
			cpu_attention_backward_tiled(NULL, a, gradient_on(&p, at, angles),
				tile[0], tile[1]);
		expect_outputs(label, &p, &r, at, end, L, 16 * EPS, 16 * EPS);
		assert_int_equal(release(NULL), 0);
	}
}

static void overflowing_scores_count_nothing(void **state)
{
	try_lost_keys(-3e38, ARRAYS);
}

static void infinite_keys_count_nothing(void **state)
{
	try_lost_keys(-INFINITY, DQ);
}

// test that attention rounds its outputs
static void outputs_are_rounded(void **state)
{
	const Problem p = { 2, 2, 40, 40, 8, true, 1, 2, false, true, .group = 2 };
	Array at[ARRAYS], angles[2], L = poisoned(p.B * p.H * p.seqlen_q);
	fill_angles(&p, angles);
	reference_of(&p, BF16, at);
	Attention a = attention_on(&p, at, L);
	cpu_attention_forward(NULL, a);
	cpu_attention_backward(NULL, a, gradient_on(&p, at, angles));
	for (int i = O; i < ARRAYS; i++) {
		size_t written = 0;
		for (size_t e = 0; e < length_of(&p, i); e++) {
			float x = (float)reals(at[i])[e];
			written += !isnan(x);
			assert_true(isnan(x) || x == round_to(BF16, x));
		}
		assert_int_equal(written, p.B * heads_in(&p, i) * rows_of(&p, i) * p.D);
	}
}

// test that threads change no bit of attention
static void threads_change_no_bit(void **state)
{
	const Problem *p = &problems[2];
	Array first[ARRAYS], first_L = { NULL, TYPE_REAL };
	for (int threads = 1; threads <= 3; threads++) {
		Array at[ARRAYS], angles[2], L = poisoned(p->B * p->H * p->seqlen_q);
		fill_angles(p, angles);
		reference_of(p, TYPE_REAL, at);
		Attention a = attention_on(p, at, L);
		omp_set_num_threads(threads);
		cpu_attention_forward(NULL, a);
		cpu_attention_backward(NULL, a, gradient_on(p, at, angles));
		if (threads == 1)
			memcpy(first, at, sizeof first), first_L = L;
		expect_same("L", L, first_L, p->B * p->H * p->seqlen_q);
		for (int i = O; i < ARRAYS; i++)
			expect_same(array_names[i], at[i], first[i], length_of(p, i));
	}
}

// test that packed sequences are as alone
static void packed_sequences_are_as_alone(void **state)
{
	for (int i = 0; i < 4; i++) {
		const Problem p = packed_rows((Problem){ .H = 4, .D = 8, .size = 1,
			.causal = i > 0, .gap = 3, .rotated = true, .group = 2,
			.bottom_right = i > 1 });
		Array at[ARRAYS], alone[ARRAYS], angles[2], L = poisoned(p.H
			* p.seqlen_q), part[ARRAYS];
		fill_angles(&p, angles);
		reference_of(&p, i == 3 ? BF16 : TYPE_REAL, at);
		reference_of(&p, i == 3 ? BF16 : TYPE_REAL, alone);
		Attention a = packed_on(&p, at, L, starts_q, starts_k);
		cpu_attention_forward(NULL, a);
		cpu_attention_backward(NULL, a, gradient_on(&p, at, angles));
		for (int b = 0; b < SEQUENCES; b++) {
			Problem one = one_of_packed(NULL, &p, b, alone, part);
			Array one_L = poisoned(one.H * one.seqlen_q);
			Attention own = attention_on(&one, part, one_L);
			cpu_attention_forward(NULL, own);
			cpu_attention_backward(NULL, own, gradient_on(&one, part, angles));
			for (size_t h = 0; h < one.H; h++)
				expect_same("L", array_at(L, h * p.seqlen_q + starts_q[b]),
					array_at(one_L, h * one.seqlen_q), one.seqlen_q);
		}
		for (int o = O; o < ARRAYS; o++)
			expect_same(array_names[o], at[o], alone[o], length_of(&p, o));
		assert_int_equal(release(NULL), 0);
	}
}

TESTS(
	checked(forward_follows_the_formulas), checked(tiles_follow_the_formulas),
	checked(naive_attention_follows_the_formulas),
	checked(overflowing_scores_count_nothing),
	checked(infinite_keys_count_nothing),
	checked(outputs_are_rounded), checked(threads_change_no_bit),
	checked(packed_sequences_are_as_alone))
