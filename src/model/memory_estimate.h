/* memory_estimate.h: the bytes that a training step holds, from the shapes */
#ifndef MODEL_MEMORY_ESTIMATE_H
#define MODEL_MEMORY_ESTIMATE_H

#include "model/model.h"

typedef struct MemoryEstimate {
	double category[NCATEGORIES];    /* bytes of each, where it has most */
	double total;                    /* bytes, where all together have most */
} MemoryEstimate;

/* of forward and backward of B sequences of T tokens, and AdamW's if `train`.
 * Left out: workspaces of libraries, and what has no row for each token */
MemoryEstimate memory_estimate(const Model *m, size_t B, size_t T, bool train);
/* total bytes of a forward pass that keeps nothing, without AdamW's */
double  memory_estimate_forward(const Model *m, size_t B, size_t T);
/* bytes that one block saves for its backward pass */
double  memory_estimate_block(const Model *m, size_t B, size_t T);

#endif
