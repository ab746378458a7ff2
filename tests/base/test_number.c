/* every encoding of fp16 and bf16, and every midpoint between neighbours */
#include "base/number.h"
#include "base/options.h"
#include "tests/base/program.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

// what the tests know about a narrow format
typedef struct Narrow {
	Type type;
	uint16_t infinity, quiet;      /* encodings: infinity, the quiet bit */
	uint16_t (*encode)(float);
	float (*decode)(uint16_t);
} Narrow;

static const Narrow narrow[2] = {
	{ FP16, 0x7c00, 0x0200, fp16_from_float, fp16_to_float },
	{ BF16, 0x7f80, 0x0040, bf16_from_float, bf16_to_float },
};

static int is_nan_code(const Narrow *f, uint16_t h)
{
	return (h & 0x7fff) > f->infinity;
}

// test: decoding and encoding is the identity
static void test_identity(void **state)
{
	for (int k = 0; k < 2; k++)
		for (unsigned code = 0; code < 65536; code++) {
			const Narrow *f = &narrow[k];
			uint16_t h = (uint16_t)code;
			uint16_t want = is_nan_code(f, h) ? h | f->quiet : h;
			assert_int_equal(f->encode(f->decode(h)), want);
		}
}

// test: the value of an encoding is what the formula says
static double formula(Type t, unsigned magnitude)
{
	int M = type_formats[t].fraction_bits;
	int b = (1 << (type_formats[t].exponent_bits - 1)) - 1;
	int e = (int)(magnitude >> M), m = (int)(magnitude & ((1u << M) - 1));
	return e ? ldexp(1 + ldexp(m, -M), e - b) : ldexp(m, 1 - b - M);
}

static void test_formula(void **state)
{
	for (int k = 0; k < 2; k++)
		for (unsigned h = 0; h < narrow[k].infinity; h++) {
			const Narrow *f = &narrow[k];
			double x = formula(f->type, h), next = formula(f->type, h + 1);
			assert_true(f->decode((uint16_t)h) == x);
			assert_true(f->decode((uint16_t)(h | 0x8000)) == -x);
			assert_true(type_spacing(f->type, x) == next - x);
		}
	assert_true(type_max(FP16) == fp16_to_float(0x7bff));
	assert_true(type_max(BF16) == bf16_to_float(0x7f7f));
	assert_true(type_max(FP32) == 0x1.fffffep127);
	assert_true(type_min_normal(FP16) == fp16_to_float(0x0400));
	assert_int_equal(type_size(FP16) + type_size(BF16), type_size(FP32));
	assert_int_equal(type_size(FP64), sizeof(double));
	assert_int_equal(type_size(TF32), sizeof(float));
	assert_true(round_to(TF32, 1 + 0x1p-11f) == 1);      /* a tie, to even */
	assert_true(round_to(TF32, 1 + 0x1.8p-11f) == 1 + 0x1p-10f);
	assert_true(round_to(TF32, -0x1p-136f) == -0x1p-136f);
	assert_true(isnan(round_to(TF32, NAN)) && isinf(round_to(TF32, INFINITY)));
}

// test: midpoints go to even, their neighbours to the nearest
static void test_midpoints(void **state)
{
	for (int k = 0; k < 2; k++)
		for (unsigned code = 0; code < narrow[k].infinity; code++) {
			const Narrow *f = &narrow[k];
			uint16_t h = (uint16_t)code, up = (uint16_t)(code + 1);
			double lo = formula(f->type, h), hi = formula(f->type, up);
			float middle = (float)((lo + hi) / 2);
			assert_true(middle == (lo + hi) / 2);
			assert_int_equal(f->encode(middle), h & 1 ? up : h);
			assert_int_equal(f->encode(nextafterf(middle, 0)), h);
			assert_int_equal(f->encode(nextafterf(middle, INFINITY)), up);
			assert_int_equal(f->encode(-middle), 0x8000 | (h & 1 ? up : h));
			assert_int_equal(f->encode(-nextafterf(middle, 0)), 0x8000 | h);
			assert_int_equal(f->encode(nextafterf(-middle, -INFINITY)),
			                 0x8000 | up);
		}
}

// test: overflow, zero and NaN
static void test_special(void **state)
{
	assert_int_equal(fp16_from_float(65504.0f), 0x7bff);
	assert_int_equal(fp16_from_float(nextafterf(65520.0f, 0)), 0x7bff);
	assert_int_equal(fp16_from_float(65520.0f), 0x7c00);
	assert_int_equal(fp16_from_float(-65520.0f), 0xfc00);
	assert_int_equal(fp16_from_float(3e38f), 0x7c00);
	assert_int_equal(bf16_from_float(3e38f), 0x7f62);
	assert_int_equal(bf16_from_float(0x1.fffffep127f), 0x7f80);
	assert_int_equal(fp16_from_float(0x1p-25f), 0x0000);    /* tie with zero */
	assert_int_equal(fp16_from_float(-0x1.8p-25f), 0x8001);
	assert_int_equal(fp16_from_float(-0.0f), 0x8000);
	assert_int_equal(bf16_from_float(-0.0f), 0x8000);
	const uint32_t nans[4] = { 0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff };
	for (int i = 0; i < 4; i++) {
		float x;
		memcpy(&x, &nans[i], sizeof x);
		for (int k = 0; k < 2; k++) {
			uint16_t h = narrow[k].encode(x);
			assert_true(is_nan_code(&narrow[k], h));
			assert_true(h & narrow[k].quiet);
			assert_int_equal(h >> 15, nans[i] >> 31);
			assert_true(isnan(round_to(narrow[k].type, x)));
		}
	}
}

// test: round_to and round_array agree with encode and decode
enum { SAMPLES = 1 << 20 };
static real sample[SAMPLES];

static float spread(uint32_t i)
{
	uint32_t u = i * UINT32_C(4099) + 17;
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

static void test_rounding(void **state)
{
	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < SAMPLES; i++)
			sample[i] = spread(i);
		round_array(narrow[k].type, sample, SAMPLES);
		for (uint32_t i = 0; i < SAMPLES; i++) {
			float want = narrow[k].decode(narrow[k].encode(spread(i)));
			float one = round_to(narrow[k].type, spread(i));
			float got = (float)sample[i];
			assert_true(isnan(want) ? isnan(one) && isnan(got) :
			            want == one && want == got &&
			            signbit(want) == signbit(got));
		}
	}
	real third = (real)1 / 3, copy = third;
	round_array(FP64, &copy, 1);
	assert_true(copy == third);
	round_array(FP32, &copy, 1);
	assert_true(copy == (real)(float)third);
	assert_true(round_to(FP32, 0.1f) == 0.1f);
}

// test: a sum rounded twice is the sum rounded once
static void check_nearest(const Narrow *f, double exact, float got)
{
	if (fabs(exact) > type_max(f->type) || got == 0)
		return;
	uint16_t h = f->encode(got), a = h & 0x7fff;
	double error = fabs(exact - got);
	double below = fabs(fabs(exact) - formula(f->type, a - 1u));
	double above = fabs(fabs(exact) - formula(f->type, a + 1u));
	assert_true(error <= below && error <= above);
	if (error == below || error == above)
		assert_int_equal(h & 1, 0);
}

static void test_sums(void **state)
{
	static const float addends[12] = { 0.01f, 0.001f, 1, -1, 3.14159f, -100,
		1e-4f, -2e-7f, 1000.5f, 0.3333f, 6e-8f, 30000 };
	for (int k = 0; k < 2; k++)
		for (unsigned h = 0; h < 65536; h++)
			for (int i = 0; i < 12; i++) {
				const Narrow *f = &narrow[k];
				float a = f->decode((uint16_t)h);
				float b = round_to(f->type, addends[i]);
				if (!isfinite(a) || (f->type == BF16 && a != 0 &&
				    fabs(logb(a) - logb(b)) > 20))
					continue;
				check_nearest(f, (double)a + b, round_to(f->type, a + b));
			}
}

// test: agreement with the compiler's formats
static void test_compiler(void **state)
{
	int compared = 0;
#ifdef __FLT16_MAX__
	for (uint32_t i = 0; i < SAMPLES; i++, compared++) {
		float x = spread(i), theirs = (float)(_Float16)x;
		float ours = round_to(FP16, x);
		assert_true(isnan(x) ? isnan(ours) : ours == theirs);
	}
#endif
#ifdef __BFLT16_MAX__
	for (uint32_t i = 0; i < SAMPLES; i++, compared++) {
		float x = spread(i), theirs = (float)(__bf16)x;
		float ours = round_to(BF16, x);
		if (isnan(x) || fabsf(x) >= 0x1p-126f)
			assert_true(isnan(x) ? isnan(ours) : ours == theirs);
	}
#endif
	if (!compared)
		skip();
}

// test: FP8 agrees with ml_dtypes and saturates
static float float_from_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static void test_fp8_golden(void **state)
{
	FILE *f = fopen("tests/golden/fp8.txt", "r");
	unsigned bits, code, n = 0;
	char name[8], kind[4];
	assert_non_null(f);
	for (; fscanf(f, "%7s %3s %x %x", name, kind, &bits, &code) == 4; n++) {
		Type t = strcmp(name, "e4m3") == 0 ? E4M3 : E5M2;
		float x = float_from_bits(bits), value = fp8_to_float(t, code);
		if (strcmp(kind, "is") == 0)
			assert_true(isnan(x) ? isnan(value)
				: value == x && signbit(value) == signbit(x));
		if (isfinite(x))
			assert_int_equal(fp8_from_float(t, x), code);
		if (isfinite(x))
			assert_true(round_to(t, x) == value);
	}
	assert_true(feof(f) && n > 2 * 256 * 3);
	fclose(f);
}

static void test_fp8_special(void **state)
{
	const Type types[] = { E4M3, E5M2 };
	const float largest[] = { 448, 57344 };
	for (int k = 0; k < 2; k++) {
		Type t = types[k];
		assert_true(type_max(t) == largest[k] && type_size(t) == 1);
		assert_true(type_min_normal(t) == (k ? 0x1p-14 : 0x1p-6));
		assert_true(round_to(t, INFINITY) == largest[k]);
		assert_true(round_to(t, -INFINITY) == -largest[k]);
		assert_true(round_to(t, -3e38f) == -largest[k]);
		assert_true(round_to(t, largest[k] * 1.07f) == largest[k]);
		assert_int_equal(fp8_from_float(t, NAN), 0x7f);
		assert_int_equal(fp8_from_float(t, -NAN), 0x7f);
		assert_int_equal(fp8_from_float(t, -0.0f), 0x80);
		for (uint32_t i = 0; i < SAMPLES; i++)
			sample[i] = spread(i);
		round_array(t, sample, SAMPLES);
		for (uint32_t i = 0; i < SAMPLES; i++) {
			float want = fp8_to_float(t, fp8_from_float(t, spread(i))),
				one = round_to(t, spread(i)), got = (float)sample[i];
			assert_true(isnan(want) ? isnan(one) && isnan(got)
				: want == one && want == got
				&& signbit(want) == signbit(got));
		}
	}
}

static void test_names(void **state)
{
	for (int t = 0; t < NTYPES; t++)
		assert_int_equal(options_choice(TYPES, type_names[t]), t);
}

TESTS(
	cmocka_unit_test(test_identity),
	cmocka_unit_test(test_formula),
	cmocka_unit_test(test_midpoints),
	cmocka_unit_test(test_special),
	cmocka_unit_test(test_rounding),
	cmocka_unit_test(test_sums),
	cmocka_unit_test(test_compiler),
	cmocka_unit_test(test_fp8_golden),
	cmocka_unit_test(test_fp8_special),
	cmocka_unit_test(test_names))
