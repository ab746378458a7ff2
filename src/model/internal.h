/* internal.h: helpers shared by the files of the model */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "model/model.h"

#define NORM_EPS 1e-5   /* of every RMSNorm, as in the staff model */

Array array_new(Model *m, size_t n, Type type, Category category,
	const char *what);
Array temporary(Model *m, size_t n, Type type, const char *what);
/* of the type that the policy gives to kind */
Array activation(Model *m, size_t n, OpKind kind, const char *what);
void  array_drop(Model *m, Array *a);

/* the index of a block's parameter */
static inline int in_block(const Model *m, int layer, BlockParameter which)
{
	return shape_block_parameter(&m->shape, layer, which);
}

/* x itself when it has the type, else a temporary copy in that type; give_back
 * frees only a copy */
Array take_as(Model *m, Array x, size_t n, Type type);
void  give_back(Model *m, Array *copy, Array x);

/* Y (N, rows) = X (N, columns) W^T under the policy */
void linear_forward(Model *m, Array Y, Array X, int parameter, size_t N);
/* dX (N, columns) = dY W + beta dX, dW = dY^T X + beta_w dW */
void linear_backward(Model *m, Array dX, double beta, Array dY, Array X,
	int parameter, double beta_w, size_t N);

#endif
