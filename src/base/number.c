#include "base/number.h"
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* elements that pay for waking threads; elements of one call of a thread */
enum { LONG_ARRAY = 1 << 16, PART = 1 << 12 };

// name the formats and state their layouts
const char *const type_names[NTYPES] = { CHOICE_NAMES(TYPES_OF) };
const Format type_formats[NTYPES] = {
	[FP32] = { 8, 23 }, [BF16] = { 8, 7 },
	[FP16] = { 5, 10 }, [FP64] = { 11, 52 }, [TF32] = { 8, 10 },
	[E4M3] = { 4, 3 }, [E5M2] = { 5, 2 },
};

size_t type_size(Type t)
{
	if (t == TF32)
		t = FP32;            /* which stores it */
	return (size_t)(1 + type_formats[t].exponent_bits
	                  + type_formats[t].fraction_bits) / 8;
}

// compute the spacing and the range of a format
static int bias(Type t)
{
	return (1 << (type_formats[t].exponent_bits - 1)) - 1;
}

double type_spacing(Type t, double x)
{
	int exponent = x == 0 ? 1 - bias(t) : ilogb(x);
	if (exponent < 1 - bias(t))
		exponent = 1 - bias(t);         /* all subnormals share one spacing */
	return ldexp(1, exponent - type_formats[t].fraction_bits);
}

double type_max(Type t)
{
	if (t == E4M3)
		return ldexp(2 - ldexp(1, 1 - type_formats[t].fraction_bits),
			bias(t) + 1);
	return ldexp(2 - ldexp(1, -type_formats[t].fraction_bits), bias(t));
}

double type_min_normal(Type t)
{
	return ldexp(1, 1 - bias(t));
}

// read and write the bits of a float
#define FP32_MAGNITUDE UINT32_C(0x7fffffff)
#define FP32_INFINITY  UINT32_C(0x7f800000)
#define FP32_QUIET     UINT32_C(0x00400000)

static inline uint32_t float_bits(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

static inline float float_of_bits(uint32_t u)
{
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

/* the float bits u if choose, else v: one blend instruction in a loop */
static inline uint32_t select_bits(uint32_t choose, uint32_t u, uint32_t v)
{
	return choose ? u : v;
}

// round an integer to nearest even
/* u with its low k bits rounded away (they become zero), ties to even */
static inline uint32_t drop_bits(uint32_t u, int k)
{
	uint32_t odd = (u >> k) & 1, half = UINT32_C(1) << (k - 1);
	return (u + half - 1 + odd) >> k << k;
}

// encode and decode bf16, round to TF32
static inline uint32_t tf32_round_bits(uint32_t u)
{
	uint32_t nan = (u & FP32_MAGNITUDE) > FP32_INFINITY;
	return nan ? u | FP32_QUIET : drop_bits(u, 13);
}

static inline uint32_t bf16_round_bits(uint32_t u)
{
	uint32_t nan = (u & FP32_MAGNITUDE) > FP32_INFINITY;
	return nan ? (u & ~UINT32_C(0xffff)) | FP32_QUIET : drop_bits(u, 16);
}

uint16_t bf16_from_float(float x)
{
	return (uint16_t)(bf16_round_bits(float_bits(x)) >> 16);
}

float bf16_to_float(uint16_t h)
{
	return float_of_bits((uint32_t)h << 16);
}

// round to fp16, still encoded as fp32
#define FP16_OVERFLOW UINT32_C(0x47800000)     /* 2^16 */
#define FP16_NORMAL   UINT32_C(0x38800000)     /* 2^-14 */

static inline uint32_t fp16_round_bits(uint32_t u)
{
	uint32_t sign = u & ~FP32_MAGNITUDE, a = u & FP32_MAGNITUDE;
	uint32_t normal = drop_bits(a, 13);
	uint32_t small = float_bits((float_of_bits(a) + 0.5f) - 0.5f);
	uint32_t nan = (a & ~UINT32_C(0x1fff)) | FP32_QUIET;
	uint32_t finite = select_bits(a < FP16_NORMAL, small, normal);
	uint32_t large = select_bits(a > FP32_INFINITY, nan, FP32_INFINITY);
	uint32_t overflows = (a > FP32_INFINITY) | (normal >= FP16_OVERFLOW);
	return sign | select_bits(overflows, large, finite);
}

// encode and decode fp16
uint16_t fp16_from_float(float x)
{
	uint32_t u = fp16_round_bits(float_bits(x));
	uint32_t sign = u >> 16 & 0x8000, a = u & FP32_MAGNITUDE;
	if (a >= FP32_INFINITY)
		return (uint16_t)(sign | 0x7c00 | (a >> 13 & 0x03ff));
	if (a < FP16_NORMAL)
		return (uint16_t)(sign | (uint32_t)(float_of_bits(a) * 0x1p24f));
	return (uint16_t)(sign | ((a >> 13) - (112 << 10)));
}

float fp16_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, a = h & 0x7fff;
	if (a >= 0x7c00)
		return float_of_bits(sign | FP32_INFINITY | a << 13);
	if (a < 0x0400)
		return (sign ? -1.0f : 1.0f) * (float)a * 0x1p-24f;
	return float_of_bits(sign | (a + (112 << 10)) << 13);
}

// round to FP8, still encoded as fp32
typedef struct SmallFormat {
	uint32_t normal, largest;      /* the smallest normal, the largest number */
	float shift;                   /* 2^23 times the smallest positive number */
	int dropped;                   /* fraction bits fewer than fp32 */
} SmallFormat;

static const SmallFormat e4m3 = { 0x3c800000, 0x43e00000, 0x1p14f, 20 },
	e5m2 = { 0x38800000, 0x47600000, 0x1p7f, 21 };

static inline uint32_t fp8_round_bits(uint32_t u, SmallFormat f)
{
	uint32_t sign = u & ~FP32_MAGNITUDE, a = u & FP32_MAGNITUDE;
	uint32_t small = float_bits((float_of_bits(a) + f.shift) - f.shift);
	uint32_t near = select_bits(a < f.normal, small, drop_bits(a, f.dropped));
	uint32_t finite = sign | select_bits(near > f.largest, f.largest, near);
	return select_bits(a > FP32_INFINITY, FP32_INFINITY | FP32_QUIET, finite);
}

// encode and decode FP8
uint8_t fp8_from_float(Type t, float x)
{
	bool wide = t == E5M2;
	SmallFormat f = wide ? e5m2 : e4m3;
	uint32_t u = fp8_round_bits(float_bits(x), f), a = u & FP32_MAGNITUDE,
		sign = u >> 24 & 0x80, rebias = wide ? 112 << 2 : 120 << 3;
	if (a > FP32_INFINITY)
		return 0x7f;
	if (a < f.normal)
		return (uint8_t)(sign
			| (uint32_t)(float_of_bits(a) * (wide ? 0x1p16f : 0x1p9f)));
	return (uint8_t)(sign | ((a >> f.dropped) - rebias));
}

float fp8_to_float(Type t, uint8_t code)
{
	if (t == E5M2)
		return fp16_to_float((uint16_t)(code << 8));
	if ((code & 0x7f) == 0x7f)
		return float_of_bits(FP32_INFINITY | FP32_QUIET);
	return 256 * fp16_to_float((uint16_t)((code & 0x80) << 8
		| (code & 0x7f) << 7));
}

// round a value, round an array
float round_to(Type t, float x)
{
	switch (t) {
	case E4M3: return float_of_bits(fp8_round_bits(float_bits(x), e4m3));
	case E5M2: return float_of_bits(fp8_round_bits(float_bits(x), e5m2));
	case BF16: return float_of_bits(bf16_round_bits(float_bits(x)));
	case FP16: return float_of_bits(fp16_round_bits(float_bits(x)));
	case TF32: return float_of_bits(tf32_round_bits(float_bits(x)));
	default:   return x;
	}
}

static void round_part(Type t, real *x, size_t n)
{
	if (t == BF16) {
		// round each x[i] with bf16_round_bits
		#pragma omp simd
		for (size_t i = 0; i < n; i++)
			x[i] = float_of_bits(bf16_round_bits(float_bits((float)x[i])));
	} else if (t == FP16) {
		// round each x[i] with fp16_round_bits
		#pragma omp simd
		for (size_t i = 0; i < n; i++)
			x[i] = float_of_bits(fp16_round_bits(float_bits((float)x[i])));
	} else if (t == TF32) {
		// round each x[i] with tf32_round_bits
		#pragma omp simd
		for (size_t i = 0; i < n; i++)
			x[i] = float_of_bits(tf32_round_bits(float_bits((float)x[i])));
	} else if (t == E4M3 || t == E5M2) {
		// round each x[i] with fp8_round_bits
		const SmallFormat f = t == E4M3 ? e4m3 : e5m2;
		#pragma omp simd
		for (size_t i = 0; i < n; i++)
			x[i] = float_of_bits(fp8_round_bits(float_bits((float)x[i]), f));
	} else if (t == FP32 && sizeof(real) > sizeof(float)) {
		for (size_t i = 0; i < n; i++)
			x[i] = (float)x[i];
	}
}

// round a value, round an array
void round_array(Type t, real *x, size_t n)
{
	if (n < LONG_ARRAY) {
		round_part(t, x, n);
		return;
	}
	#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i += PART)
		round_part(t, x + i, n - i < PART ? n - i : PART);
}

// pack an array, unpack an array
void pack_array(Type t, void *packed, const real *x, size_t n)
{
	uint16_t *bits = packed;
	float *floats = packed;
	assert(t == FP32 || t == BF16 || type_size(t) == sizeof *x);
	if (type_size(t) == sizeof *x)
		memcpy(packed, x, n * sizeof *x);
	else if (t == BF16)
		for (size_t i = 0; i < n; i++)
			bits[i]
				= (uint16_t)(bf16_round_bits(float_bits((float)x[i])) >> 16);
	else
		for (size_t i = 0; i < n; i++)
			floats[i] = (float)x[i];
}

void unpack_array(Type t, real *x, const void *packed, size_t n)
{
	const uint16_t *bits = packed;
	const float *floats = packed;
	assert(t == FP32 || t == BF16 || type_size(t) == sizeof *x);
	if (type_size(t) == sizeof *x)
		memcpy(x, packed, n * sizeof *x);
	else if (t == BF16)
		for (size_t i = 0; i < n; i++)
			x[i] = float_of_bits((uint32_t)bits[i] << 16);
	else
		for (size_t i = 0; i < n; i++)
			x[i] = floats[i];
}
