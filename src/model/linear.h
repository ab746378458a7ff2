/* linear.h: linear layers and the matmuls of attention, under the policy */
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
/* C = A B for a batch of matmuls of attention; A and B have nA and nB
 * elements */
void attention_matmul(Model *m, Array C, Array A, size_t nA, Array B,
	size_t nB, Matmul shape);

#endif
