/* internal.h: helpers shared by the files of the model */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "model/model.h"
#include "ops/array.h"

#define NORM_EPS 1e-5   /* of every RMSNorm, as in the staff model */

Array temporary(Model *m, size_t n, Type type, const char *what);
/* of the type that the policy gives to kind */
Array activation(Model *m, size_t n, OpKind kind, const char *what);
void  array_drop(Model *m, Array *a);

/* the index of a block's parameter */
static inline int in_block(const Model *m, int layer, BlockParameter which)
{
	return shape_block_parameter(&m->shape, layer, which);
}

/* x itself when matmuls can read it as that type, else a temporary copy;
 * give_back frees only a copy */
Array take_as(Model *m, Array x, size_t n, Type type);
void  give_back(Model *m, Array *copy, Array x);

/* W: `count` adjacent parameters of equal width, one below the other */
typedef struct ParamSpan {
	int first, count;
} ParamSpan;

/* Y (N, rows) = X (N, columns) W^T under the policy */
void linear_forward(Model *m, Array Y, Array X, ParamSpan W, size_t N);
/* dX (N, columns) = dY W + beta dX */
void linear_backward_input(Model *m, Array dX, double beta, Array dY,
	ParamSpan W, size_t N);
/* dW = dY^T X + beta dW */
void linear_backward_weight(Model *m, Array dY, Array X, ParamSpan W,
	double beta, size_t N);
/* C = A B of attention: nA, nB elements */
void attention_matmul(Model *m, Array C, Array A, size_t nA, Array B,
	size_t nB, Matmul shape);

/* is only the input of this block saved? */
static inline bool saves_input(const Model *m, bool keep, int layer)
{
	return keep && m->checkpoint_every > 0 && layer % m->checkpoint_every == 0;
}

/* how a path goes through blocks. forward: n blocks from first on, whose input is
 * x; it is kept if save_input, and all the rest if keep. output: the sum after
 * the last block is returned. backward: through one block, all of which is
 * saved */
typedef struct Blocks {
	Array (*forward)(Model *m, int first, int n, Array x, bool keep,
		bool save_input, bool output);
	void  (*backward)(Model *m, int layer, void *gradient);
} Blocks;

/* through all blocks; runs again those of which only an input is saved */
void blocks_backward(Model *m, const Blocks *blocks, void *gradient);

/* the fused path (fused.c); the eager one is in forward.c and backward.c */
Array eager_blocks_forward(Model *m, int first, int n, Array x, bool keep,
	bool save_input, bool output);
void fused_forward(Model *m, bool keep);
void fused_backward(Model *m, double beta);

#endif
