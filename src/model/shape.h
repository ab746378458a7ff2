/* shape.h: the hyper-parameters of a model, the course's six sizes, and the
 * list of parameters */
#ifndef MODEL_SHAPE_H
#define MODEL_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/choices.h"

typedef struct Shape {
	long vocab, context, d_model, d_ff, layers, heads, d_head;
	double theta;                    /* base of the rotary embedding */
} Shape;

/* one of the course's models */
typedef struct NamedShape {
	const char *name;
	Shape shape;
} NamedShape;

#define SIZES_OF(FIRST, NEXT) \
	/*                 vocab  context d_model d_ff layers heads d_head theta */ \
	FIRST(SIZE_SMALL, "small", 10000, 512,  768,  3072, 12, 12,  64, 10000) \
	NEXT(SIZE_MEDIUM, "medium", 10000, 512, 1024, 4096, 24, 16,  64, 10000) \
	NEXT(SIZE_LARGE, "large", 10000, 512, 1280,  5120, 36, 20,  64, 10000) \
	NEXT(SIZE_XL, "xl",       10000, 512, 1600,  6400, 48, 25,  64, 10000) \
	NEXT(SIZE_2_7B, "2.7B",   10000, 512, 2560, 10240, 32, 32,  80, 10000) \
	NEXT(SIZE_10B, "10B",     10000, 512, 4608, 12288, 50, 36, 128, 10000)
#define SIZES CHOICES(SIZES_OF)
enum { CHOICE_IDS(SIZES_OF) NSIZES };
/* at the course's vocabulary and context */
extern const NamedShape model_sizes[NSIZES];

// declare the list of parameters
/* per block, in this order; the blocks follow the embedding, then come ln_final
 * and lm_head */
typedef enum { P_LN1, P_Q, P_K, P_V, P_OUTPUT, P_LN2, P_W1, P_W3, P_W2,
	NBLOCK } BlockParameter;

typedef struct Parameter {
	/* "layers.3.attn.q_proj.weight", as in the staff's state_dict */
	char name[64];
	size_t rows, columns;
	size_t offset, count;            /* elements in the flat buffer */
	bool gain;                       /* of a norm: one row */
} Parameter;

/* how many tensors, and how many elements in all of them together */
int       shape_nparameters(const Shape *shape);
size_t    shape_count(const Shape *shape);
/* elements of the flat buffer, gaps between units included */
size_t    shape_extent(const Shape *shape);
/* parameter i of the list; 0 is the embedding */
Parameter shape_parameter(const Shape *shape, int i);
/* the index of a block's parameter in the list */
int       shape_block_parameter(const Shape *shape, int layer,
	BlockParameter which);

// declare units
enum { UNIT_ALIGN = 64 };            /* elements */
/* adjacent parameters: unit 0 is the embedding, unit 1 + i block i, the last
 * one the head */
typedef struct Unit {
	int first, count;                /* parameters */
	size_t offset, extent;           /* in the flat buffer */
} Unit;

int       shape_nunits(const Shape *shape);
Unit      shape_unit(const Shape *shape, int unit);

/* sets d_head = d_model / heads; returns NULL, or why that is impossible */
const char *shape_split_heads(Shape *shape);
/* returns NULL, or why no model can have this shape */
const char *shape_error(const Shape *shape);

/* FLOPs of the matmuls in one forward pass of the eager path over N = B T
 * tokens; backward takes twice as many */
double forward_flops(const Shape *shape, size_t B, size_t T);

#endif
