/* fp8_types.h: matrices in FP8, with the scales of their blocks */
#ifndef OPS_FP8_TYPES_H
#define OPS_FP8_TYPES_H

#include "base/choices.h"
#include "ops/array.h"

/* which elements share a scale: all, by the maximum of earlier steps or by their
 * own; those of a row; those of a block of FP8_TILE x FP8_TILE */
#define FP8_SCALINGS_OF(FIRST, NEXT) \
	FIRST(FP8_DELAYED, "tensor-delayed") NEXT(FP8_TENSOR, "tensor") \
	NEXT(FP8_ROW, "row") NEXT(FP8_BLOCK, "block")
#define FP8_SCALINGS CHOICES(FP8_SCALINGS_OF)
typedef enum { CHOICE_IDS(FP8_SCALINGS_OF) NFP8_SCALINGS } Fp8Scaling;
enum { FP8_TILE = 128, FP8_UNIT = 4 };

// declare where scales lie
/* of a matrix (rows, k), where k is the index that a matmul sums over */
typedef enum {
	FP8_ONE,         /* one */
	FP8_ROWS,        /* (rows) */
	FP8_BLOCKS,      /* (rows / TILE, k / TILE), rows of a multiple of 4 */
	FP8_VECTORS      /* (k / TILE, rows), of the block in which an element is */
} Fp8Layout;

// declare a matrix in FP8
/* an element is its code times its scale */
typedef struct Fp8Matrix {
	Array codes;                     /* (rows, k) of E4M3 or E5M2 */
	Array scale;                     /* fp8_scales of them, of TYPE_REAL */
	Fp8Layout layout;
	size_t rows, k;
} Fp8Matrix;

// declare a cast to FP8
/* of gate and up, ab (rows, 2, F): the matrix x; SwiGLU's result h (rows, F); the
 * gradient of ab (rows, 2 F), where x is that of h */
typedef enum { FP8_PLAIN, FP8_SWIGLU, FP8_SWIGLU_GRADIENT, FP8_SOURCES }
	Fp8Source;

typedef struct Fp8Cast {
	Fp8Source source;
	Array ab;                        /* unless FP8_PLAIN */
	Array x;                         /* FP32 or BF16 */
	size_t rows, columns;            /* of the matrix that is cast */
	Fp8Scaling scaling;
	/* copies of it and of its transpose, of one type; codes.at NULL: not made */
	Fp8Matrix straight, turned;
	/* fp8_groups of TYPE_REAL, the largest |x| of each; given: they are an
	 * input, else they are found first */
	Array maxima;
	bool given;
	/* one element, raised to the largest |x|; at NULL: it is not */
	Array seen;
} Fp8Cast;
#endif
