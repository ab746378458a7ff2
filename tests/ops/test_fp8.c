/* casts to FP8 and matmuls of it, against sums in double */
#include "ops/fp8.h"
#include "tests/ops/on_cpu.h"

// make a matrix for a test of FP8
static const size_t shapes[][2] = { { 1, 1 }, { 3, 5 }, { 128, 128 },
	{ 129, 127 }, { 17, 300 }, { 257, 131 } };
enum { NSHAPES = sizeof shapes / sizeof *shapes };

static Fp8Matrix matrix(Type type, Fp8Layout layout, size_t rows, size_t k)
{
	Array codes = poisoned(rows * k),
		scale = poisoned(fp8_scales(layout, rows, k));
	return (Fp8Matrix){ { codes.at, type }, scale, layout, rows, k };
}

static Fp8Layout layout_of(Fp8Scaling scaling, bool left)
{
	return scaling == FP8_ROW ? FP8_ROWS : scaling != FP8_BLOCK ? FP8_ONE
		: left ? FP8_VECTORS : FP8_BLOCKS;
}

/* both copies of x, the straight one as a left operand */
static Fp8Cast cast_of(Array x, size_t rows, size_t columns, Fp8Scaling scaling,
	Type type)
{
	Fp8Cast c = { .x = x, .rows = rows, .columns = columns,
		.scaling = scaling, .maxima = poisoned(fp8_groups(scaling, rows,
			columns)),
		.straight = matrix(type, layout_of(scaling, true), rows, columns),
		.turned = matrix(type, layout_of(scaling, false), columns, rows) };
	ops->fp8_cast(device, c);
	return c;
}

static double element_of(const Fp8Matrix *m, size_t row, size_t k)
{
	return (double)reals(m->codes)[row * m->k + k]
		* reals(m->scale)[fp8_scale_at(m, row, k)];
}

// test: an element differs by one rounding under its scale
static void elements_round_once(void **state)
{
	for (int i = 0; i < NSHAPES * NFP8_SCALINGS * 2; i++) {
		const size_t *n = shapes[i / NFP8_SCALINGS / 2];
		Type type = i % 2 ? E5M2 : E4M3;
		Array x = drawn(n[0] * n[1], i, 0.1, 3);
		Fp8Cast c = cast_of(x, n[0], n[1], i / 2 % NFP8_SCALINGS, type);
		for (size_t a = 0; a < n[0]; a++)
			for (size_t b = 0; b < n[1]; b++) {
				double value = reals(x)[a * n[1] + b];
				float s = (float)reals(c.straight.scale)[fp8_scale_at(
					&c.straight, a, b)], t = (float)reals(c.turned.scale)[
					fp8_scale_at(&c.turned, b, a)];
				assert_true(fabs(element_of(&c.straight, a, b) - value)
					<= s * type_spacing(type, value / s) / 2);
				assert_true(fabs(element_of(&c.turned, b, a) - value)
					<= t * type_spacing(type, value / t) / 2);
			}
		release(state);
	}
}

// test: scales are the smallest powers of two
static void scales_are_smallest(void **state)
{
	const Type types[] = { E4M3, E5M2 };
	for (int t = 0; t < 2; t++)
		for (int i = -4000; i < 4000; i++) {
			float maximum = (float)exp2(i / 32.0), s;
			if (maximum == 0 || !isfinite(maximum))
				continue;
			s = fp8_scale(types[t], maximum);
			assert_true(maximum / s <= type_max(types[t]));
			assert_true(maximum / (s / 2) > type_max(types[t])
				|| s == 0x1p-126f);
		}
	assert_true(fp8_scale(E4M3, 448) == 1);
	assert_true(fp8_scale(E4M3, nextafterf(448, 500)) == 2);
	assert_true(fp8_scale(E5M2, 57344) == 1);
	assert_true(fp8_scale(E4M3, 0) == 1);
}

// test: what is not finite becomes NaN alone
static void nonfinite_become_nan(void **state)
{
	const real bad[] = { (real)INFINITY, (real)-INFINITY, (real)NAN };
	for (int i = 0; i < NFP8_SCALINGS * 3; i++) {
		enum { ROWS = 130, COLUMNS = 140, AT = 129 * COLUMNS + 3 };
		Array x = drawn(ROWS * COLUMNS, i, 0, 1);
		reals(x)[AT] = bad[i % 3];
		Fp8Cast c = cast_of(x, ROWS, COLUMNS, i / 3, E4M3);
		for (size_t k = 0; k < ROWS * COLUMNS; k++) {
			assert_int_equal(!isfinite(reals(c.straight.codes)[k]), k == AT);
			assert_int_equal(!isfinite(reals(c.turned.codes)[k]),
				k == AT % COLUMNS * ROWS + AT / COLUMNS);
		}
		release(state);
	}
}

// test: numbers that fit are the same under every scaling
static void scalings_agree(void **state)
{
	for (int i = 0; i < NSHAPES * NFP8_SCALINGS; i++) {
		const size_t *n = shapes[i / NFP8_SCALINGS];
		Array x = poisoned(n[0] * n[1]);
		for (size_t k = 0; k < n[0] * n[1]; k++)
			reals(x)[k] = (real)(random_bits(1, i, k) % 17) - 8;
		Fp8Cast c = cast_of(x, n[0], n[1], i % NFP8_SCALINGS, E4M3);
		for (size_t k = 0; k < n[0] * n[1]; k++) {
			size_t a = k / n[1], b = k % n[1];
			assert_true(element_of(&c.straight, a, b) == reals(x)[k]);
			assert_true(element_of(&c.turned, b, a) == reals(x)[k]);
		}
		release(state);
	}
}

// test: a matmul sums codes times scales
static void matmul_of_codes(void **state)
{
	for (int i = 0; i < NSHAPES * NFP8_SCALINGS * 2; i++) {
		size_t m = shapes[i % NSHAPES][0], k = shapes[i % NSHAPES][1], n = 37;
		Fp8Scaling scaling = i / NSHAPES % NFP8_SCALINGS;
		double beta = i / NSHAPES / NFP8_SCALINGS;
		Fp8Matrix A = cast_of(drawn(m * k, i, 0, 1), m, k, scaling,
			E5M2).straight, B = cast_of(drawn(k * n, i + 1, 0.5, 30), k, n,
			scaling, E4M3).turned;
		Array C = beta ? drawn(m * n, 7, 0, 5) : poisoned(m * n),
			before = copied(C, m * n);
		ops->fp8_matmul(device, C, A, B, beta);
		for (size_t at = 0; at < m * n; at++) {
			double sum = 0, size = fabs(beta ? reals(before)[at] : 0);
			for (size_t s = 0; s < k; s++) {
				double term = element_of(&A, at / n, s)
					* element_of(&B, at % n, s);
				sum += term;
				size += fabs(term);
			}
			sum += beta ? reals(before)[at] : 0;
			assert_true(fabs(reals(C)[at] - sum) <= 2 * (k + 1.0) * EPS
				* size);
		}
		release(state);
	}
}

// test: an outlier spoils its block only
static void outliers_stay_in_blocks(void **state)
{
	enum { ROWS = 200, COLUMNS = 300, I = 150, J = 10 };
	for (int scaling = FP8_TENSOR; scaling < NFP8_SCALINGS; scaling++) {
		Array x = poisoned(ROWS * COLUMNS);
		for (size_t k = 0; k < ROWS * COLUMNS; k++)
			reals(x)[k] = (real)0.01;
		reals(x)[I * COLUMNS + J] = 10000;
		Fp8Cast c = cast_of(x, ROWS, COLUMNS, scaling, E4M3);
		for (size_t a = 0; a < ROWS; a++)
			for (size_t b = 0; b < COLUMNS; b++) {
				bool row = scaling == FP8_TENSOR || (scaling == FP8_ROW
					? a == I : a >= FP8_TILE && b < FP8_TILE), column
					= scaling == FP8_ROW ? b == J : row;
				if (a == I && b == J)
					continue;
				assert_int_equal(element_of(&c.straight, a, b) == 0, row);
				assert_int_equal(element_of(&c.turned, b, a) == 0, column);
			}
		release(state);
	}
}

// test: a given maximum saturates, and the true one is noted
static void given_maxima(void **state)
{
	real values[] = { 1000, -500, 100, 0 }, maximum = 448, seen = 900;
	Fp8Cast c = { .x = { values, TYPE_REAL }, .rows = 2, .columns = 2,
		.scaling = FP8_DELAYED, .given = true,
		.maxima = { &maximum, TYPE_REAL }, .seen = { &seen, TYPE_REAL },
		.straight = matrix(E4M3, FP8_ONE, 2, 2) };
	ops->fp8_cast(device, c);
	assert_true(reals(c.straight.codes)[0] == 448);
	assert_true(reals(c.straight.codes)[1] == -448);
	assert_true(fabs(reals(c.straight.codes)[2] - 100) <= 4);
	assert_true(maximum == 448 && seen == 1000);
}

// test: SwiGLU is cast as if it had been stored
static void gated_casts(void **state)
{
	enum { ROWS = 130, F = 70 };
	for (int i = 0; i < NFP8_SCALINGS * 2; i++) {
		bool gradient = i % 2;
		size_t columns = gradient ? 2 * F : F, n = ROWS * columns;
		Array ab = drawn(ROWS * 2 * F, 1, 0.2, 2), dh = drawn(ROWS * F, 2, 0, 1),
			x = poisoned(n), h = poisoned(ROWS * F);
		ab.type = dh.type = x.type = h.type = BF16;
		if (gradient)
			ops->fused_swiglu_backward(device, x, h, dh, ab, ROWS, F);
		else
			ops->fused_swiglu_forward(device, x, ab, ROWS, F);
		Fp8Cast want = cast_of(x, ROWS, columns, i / 2, E5M2), got = want;
		got.source = gradient ? FP8_SWIGLU_GRADIENT : FP8_SWIGLU;
		got.x = gradient ? dh : (Array){ NULL, BF16 };
		got.ab = ab;
		got.straight = matrix(E5M2, got.straight.layout, ROWS, columns);
		got.turned = matrix(E5M2, got.turned.layout, columns, ROWS);
		ops->fp8_cast(device, got);
		assert_memory_equal(got.straight.codes.at, want.straight.codes.at,
			n * sizeof(real));
		assert_memory_equal(got.turned.codes.at, want.turned.codes.at,
			n * sizeof(real));
		release(state);
	}
}

// test: the history keeps a maximum for its window
static void history_forgets(void **state)
{
	enum { WINDOW = 3, SITES = 2, RANKS = 2 };
	real history[WINDOW * SITES] = { 0 }, maxima[SITES],
		seen[RANKS * SITES] = { 1, 9, 5, 2 };
	Array h = { history, TYPE_REAL }, m = { maxima, TYPE_REAL },
		s = { seen, TYPE_REAL };
	for (int step = 0; step <= WINDOW; step++) {
		ops->fp8_advance(device, m, h, WINDOW, s, RANKS, SITES);
		assert_true(maxima[0] == (step < WINDOW ? 5 : 0));
		assert_true(maxima[1] == (step < WINDOW ? 9 : 0));
		for (int i = 0; i < RANKS * SITES; i++)
			assert_true(seen[i] == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(elements_round_once), checked(scales_are_smallest),
		checked(nonfinite_become_nan), checked(scalings_agree),
		checked(matmul_of_codes), checked(outliers_stay_in_blocks),
		checked(given_maxima), checked(gated_casts), checked(history_forgets),
	};
	return run_on_cpu(tests);
}
