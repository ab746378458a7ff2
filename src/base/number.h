/* base/number.h: number formats in software, round to nearest even */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H
#include <stddef.h>
#include <stdint.h>
#include "base/choices.h"
#include "base/real.h"

#ifdef __cplusplus
extern "C" {
#endif

// declare the number formats
#define COMMON_TYPES_OF(FIRST, NEXT) FIRST(FP32, "fp32") NEXT(BF16, "bf16")
#define TYPES_OF(FIRST, NEXT) \
	COMMON_TYPES_OF(FIRST, NEXT) NEXT(FP16, "fp16") \
	NEXT(FP64, "fp64") NEXT(TF32, "tf32") \
	NEXT(E4M3, "e4m3") NEXT(E5M2, "e5m2")
#define COMMON_TYPES CHOICES(COMMON_TYPES_OF)
#define TYPES CHOICES(TYPES_OF)
typedef enum { CHOICE_IDS(TYPES_OF) NTYPES } Type;

typedef struct Format { int exponent_bits, fraction_bits; } Format;

extern const char *const type_names[NTYPES];
extern const Format type_formats[NTYPES];

// declare the functions on number formats
size_t type_size(Type t);                 /* bytes of one element as stored */
double type_spacing(Type t, double x);    /* gap between x and the next value */
double type_max(Type t);                  /* largest finite value */
double type_min_normal(Type t);           /* smallest normal value */

/* Round to nearest even. NaN stays NaN and becomes quiet; what is too large
 * becomes infinity. */
uint16_t fp16_from_float(float x);
float    fp16_to_float(uint16_t h);       /* exact */
uint16_t bf16_from_float(float x);
float    bf16_to_float(uint16_t h);       /* exact */
/* E4M3 or E5M2, as cvt.rn.satfinite rounds: what is too large, infinity too,
 * becomes the largest finite value; NaN becomes 0x7f, without its sign */
uint8_t  fp8_from_float(Type t, float x);
float    fp8_to_float(Type t, uint8_t code);     /* exact */

/* nearest value of t; FP32, FP64: x; E4M3, E5M2: as fp8_from_float */
float round_to(Type t, float x);
/* x[i] rounded to the nearest value of t, in place. In the double build the
 * formats narrower than FP32 round by way of float and FP32 to float; FP64 does
 * nothing */
void  round_array(Type t, real *x, size_t n);
/* Convert between an array and n packed elements of type_size(t) bytes; t is
 * FP32 or BF16, or in the double build FP64. Packing rounds. */
void  pack_array(Type t, void *packed, const real *x, size_t n);
void  unpack_array(Type t, real *x, const void *packed, size_t n);

#ifdef __cplusplus
}
#endif
#endif
