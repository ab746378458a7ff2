/* arguments.h: a call, its arguments and their values */
#ifndef TESTS_CUDA_ARGUMENTS_H
#define TESTS_CUDA_ARGUMENTS_H

#include "tests/ops/compare.h"

// describe a call and its arguments
typedef enum Role { AS_NULL, AS_IN, AS_OUT, AS_UPDATED, AS_SCRATCH, AS_OVER }
	Role;
typedef enum StoredAs { HIGH, LOW, OTHER, INTEGER } StoredAs;
typedef enum Values { SPREAD, GAIN, WIDE, GATE, LOGSUM, EIGHTHS, LOWER, WEIGHTS,
	NONFINITE, STEP, TOKENS, SOME_TOKENS, ZERO, ONE } Values;
enum { D0 = 1, D1 = 2, D2 = 4, D3 = 8, ALL = 15, DIMS = 4, ARGUMENTS = 10 };

typedef struct Argument {
	Role role;
	StoredAs stored;
	unsigned dims;                  /* the sizes whose product is its length */
	Values values;
	double relative, absolute;      /* roundings: see limit_of */
	unsigned over;                  /* the sizes it is a sum or a mean over */
	size_t times;                   /* a factor of the length; 0 means 1 */
	int same;                       /* AS_OVER: the argument it lies over */
} Argument;

#define ARGUMENT(ROLE, STORED, DIMS, ...) \
	{ .role = ROLE, .stored = STORED, .dims = DIMS, __VA_ARGS__ }
#define IN(STORED, DIMS, ...)       /* ..., values */ \
	ARGUMENT(AS_IN, STORED, DIMS, .values = __VA_ARGS__)
#define OUT(STORED, DIMS, ...)      /* ..., exactness */ \
	ARGUMENT(AS_OUT, STORED, DIMS, __VA_ARGS__)
#define UPDATED(STORED, DIMS, ...)  /* ..., values, exactness */ \
	ARGUMENT(AS_UPDATED, STORED, DIMS, .values = __VA_ARGS__)
#define SCRATCH(STORED, DIMS) ARGUMENT(AS_SCRATCH, STORED, DIMS)
#define OVER(SAME) { .role = AS_OVER, .stored = LOW, .same = SAME }
#define NOTHING { .role = AS_NULL }

typedef void Call(Device *d, const Ops *o, const Array *a, const size_t *n,
	int how);
typedef size_t Sizes[DIMS];

typedef struct Case {
	const char *name;
	Call *call;
	const Sizes *shapes;            /* the last begins with 0 */
	int how;                        /* a sign, a beta, what is left out */
	Argument argument[ARGUMENTS];
} Case;

static inline size_t product_of(unsigned dims, const size_t *n)
{
	size_t product = 1;
	for (int d = 0; d < DIMS; d++)
		if (dims >> d & 1 && n[d] > 0)
			product *= n[d];
	return product;
}

// choose values that bite
static inline double chosen(Values values, const size_t *n, int stream,
	size_t i)
{
	static const double step[] = { 0.9999, 0.01, 0.9, 0.95, 0.1, 0.05, 1e-8,
		0.5 };
	double z = 4 * random_uniform(1, stream, i) - 2;
	double away = z < 0 ? -0.25 : 0.25, masked = i % 2 ? NAN : INFINITY;
	size_t T = n[1] ? n[1] : 1, row = i / T % T, column = i % T;
	switch (values) {
	case GAIN:      return 1 + 0.15 * z;
	case WIDE:      return away + 5 * z;
	case GATE:      return (away + 5 * z) * (i % 13 ? 1 : 10);
	case LOGSUM:    return 10 + 0.15 * z;
	case EIGHTHS:   return (random_bits(1, stream, i) % 17) / 8.0 - 1;
	case LOWER:     return column > row ? masked : away + 5 * z;
	case WEIGHTS:   return column > row ? masked : (1 + 0.15 * z) / (row + 1);
	case NONFINITE: return i % 7 ? z
		: (const double[]){ NAN, INFINITY, -INFINITY }[i % 3];
	case STEP:      return step[i];
	case ONE:       return 1;
	default:        return away + 0.5 * z;
	}
}

static inline int32_t chosen_integer(Values values, const size_t *n, int stream,
	size_t i)
{
	size_t last = n[2] ? n[2] : n[1];               /* the vocabulary */
	if (values == SOME_TOKENS)                      /* or -1 */
		return (int32_t)(random_bits(1, stream, i) % (last + 1)) - 1;
	return values == TOKENS ? (int32_t)(random_bits(1, stream, i) % last)
		: values == ONE;
}

#endif
