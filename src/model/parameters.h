/* parameters.h: the arrays of a parameter, and what is told of them */
#ifndef MODEL_PARAMETERS_H
#define MODEL_PARAMETERS_H

#include "model/state.h"

/* `count` adjacent parameters of equal width, used as one weight W (rows,
 * columns) whose rows are those of all, one parameter below the other */
typedef struct ParamSpan {
	int first, count;
} ParamSpan;

/* the arrays of parameter i; the gradient exists from the first backward
 * pass on */
Array model_weight(const Model *m, int i);
Array model_gradient(const Model *m, int i);
/* the index of a block's parameter */
static inline int in_block(const Model *m, int layer, BlockParameter which)
{
	return shape_block_parameter(&m->shape, layer, which);
}

/* calls of the model's hooks, where there are any */
void  enter_unit(Model *m, int unit, bool backward);
void  leave_unit(Model *m, int unit, bool backward);
void  announce_gradients(Model *m, int first, int count);
/* sets parameter i's gradient to beta (0 or 1) times itself plus the addend,
 * frees the addend, and announces the gradient */
void  take_gradient(Model *m, int i, Array *addend, double beta);

#endif
