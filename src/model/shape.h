/* shape.h: the hyper-parameters of a model, and the list of parameters */
#ifndef MODEL_SHAPE_H
#define MODEL_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Shape {
	long vocab, context, d_model, d_ff, layers, heads, d_head;
	double theta;                    /* base of the rotary embedding */
} Shape;

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
