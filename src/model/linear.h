/* linear.h: linear layers under the policy, and their casts of weights */
#ifndef MODEL_LINEAR_H
#define MODEL_LINEAR_H

#include "model/parameters.h"

/* Y (N, rows) = X (N, columns) W^T */
void linear_forward(Model *m, Array Y, Array X, ParamSpan W, size_t N);
/* dX (N, columns) = dY W + beta dX */
void linear_backward_input(Model *m, Array dX, double beta, Array dY,
	ParamSpan W, size_t N);
/* dW = dY^T X + beta dW, to the caller's array */
void linear_weight_gradient(Model *m, Array dW, Array dY, Array X, ParamSpan W,
	double beta, size_t N);
/* adds to the gradients of W and announces them */
void linear_backward_weight(Model *m, Array dY, Array X, ParamSpan W,
	double beta, size_t N);
/* frees the casts of `count` parameters from `first` on */
void linear_drop_casts(Model *m, int first, int count);

#endif
