/* what counting achieves on the windows on which a model is scored */
#include <math.h>
#include <stdbool.h>

#include "base/random.h"
#include "cases/text.h"
#include "tests/base/program.h"

enum { N = 5000, T = 16 };
static unsigned char bytes[N];
static const Text text = { bytes, N, N - N / 10 };
static const Windows windows = { 7, T };

static void write_text(int first)
{
	for (size_t i = 0; i < N; i++)
		bytes[i] = (unsigned char)(random_bits(1, 2, i) % (first + i * i
			/ (N * N / 20)));
}

static double nats(bool before, bool own)
{
	static double count[256][256];
	int32_t tokens[T], targets[T];
	double sum = 0;
	for (int a = 0; a < 256; a++)
		for (int b = 0; b < 256; b++)
			count[a][b] = !own;
	for (size_t i = before; i < text.ntrain && !own; i++)
		count[before ? bytes[i - 1] : 0][bytes[i]]++;
	for (int scored = !own; scored < 2; scored++)
		for (size_t w = 0; w < windows.n; w++) {
			text_window(&text, text_held_out(&text, windows, w), T, tokens,
				targets);
			for (int k = 0; k < T; k++) {
				double *row = count[before ? tokens[k] : 0], all = 0;
				for (int b = 0; b < 256; b++)
					all += row[b];
				if (scored)
					sum -= log(row[targets[k]] / all);
				else
					row[targets[k]]++;
			}
		}
	return sum / (windows.n * T);
}

// test that counts are scored on windows
static void counts_are_scored_on_windows(void **state)
{
	for (int first = 2; first < 40; first += 9) {
		write_text(first);
		double one = text_unigram_nats(&text, windows),
			two = text_bigram_nats(&text, windows),
			bound = text_bigram_bound_nats(&text, windows);
		assert_true(fabs(one - nats(false, false)) < 1e-12);
		assert_true(fabs(two - nats(true, false)) < 1e-12);
		assert_true(fabs(bound - nats(true, true)) < 1e-12);
		assert_true(bound < two && bound < one);
	}
}

static void windows_lie_in_the_held_out_part(void **state)
{
	size_t last = text_held_out(&text, windows, windows.n - 1);
	assert_int_equal(text_held_out(&text, windows, 0), text.ntrain);
	assert_true(last + T < N && last + 2 * (N / 10 / windows.n) > N);
}

static void a_known_order_costs_nothing(void **state)
{
	for (size_t i = 0; i < N; i++)
		bytes[i] = (unsigned char)(i % 16);
	assert_true(text_bigram_bound_nats(&text, windows) == 0);
	assert_true(text_bigram_nats(&text, windows) > 0);
}

TESTS(
	cmocka_unit_test(counts_are_scored_on_windows),
	cmocka_unit_test(windows_lie_in_the_held_out_part),
	cmocka_unit_test(a_known_order_costs_nothing))
