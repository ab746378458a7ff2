/* ops.h: every operation of the model, forward and backward, declared once.
 * Shapes are row-major, and no size is 0. "+=" marks outputs that are
 * accumulated into; the others are overwritten.
 * Outputs of elementwise operations, of rope and of softmax may lie over inputs
 * of the same shape and type. Activations, their gradients and parameters'
 * gradients are rounded to the type of the output; statistics and losses never
 * are. Parameters' gradients are FP32, BF16 or FP16 (on the CPU, any type) and
 * are rounded once a call, after the sum in fp32 or wider, which "+=" starts
 * from the values that are there. Pointers are to the device's memory. Calls
 * may return before the work is done: the host reads results by way of
 * device.h. */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include "ops/types.h"

/* a function for each operation of ops/list.h */
typedef struct Ops {
#define OPERATION(TYPE, NAME, PARAMETERS) TYPE (*NAME) PARAMETERS;
#include "ops/list.h"
#undef OPERATION
	/* kernels of attention, the simplest first; attention_forward and
	 * attention_backward take the last that they can */
	const AttentionKernel *attention_kernels;
} Ops;

const Ops *ops_for(const Device *device);
/* makes operations of a table those of ops/formulas.h */
void       ops_by_formulas(Ops *ops);

#endif
