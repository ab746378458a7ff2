/* cost_shape.h: the shape of a model as the cost model counts it */
#ifndef ESTIMATE_COST_SHAPE_H
#define ESTIMATE_COST_SHAPE_H

#include "model/shape.h"

/* shapes of our models and of others. Keys and values may be narrower than
 * queries (kv_heads), and a feed-forward layer may have two matrices or
 * three. heads = 0: no attention and no norms; vocab = 0: no embedding and
 * no head */
typedef struct CostShape {
	double vocab, d_model, d_ff, layers, heads, d_head, kv_heads, matrices;
} CostShape;

CostShape cost_shape(const Shape *shape);
double cost_parameters(const CostShape *s);
/* FLOPs of a token's forward pass: matmuls, and causal attention to half of
 * `context` on average; the backward pass takes twice as many */
double cost_forward_flops(const CostShape *s, double context);

#endif
