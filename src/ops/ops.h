/* ops.h: every operation of the model, forward and backward, declared once.
 * Arrays are row-major, and no size is 0. An output that is marked "+=" is
 * added to; any other is overwritten. Outputs of elementwise operations, of
 * rope and of softmax may lie over inputs of the same shape and type.
 * Activations, their gradients and gradients of parameters are rounded to the
 * type of the output; statistics and losses are not rounded. Gradients of
 * parameters are FP32, BF16 or FP16 (on the CPU of any type) and are rounded
 * once a call, after a sum in fp32 or wider, which for "+=" starts from the
 * values that are there. Pointers are to the device's memory. A call may return
 * before the work is done: the host reads results by way of device.h. */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include "ops/dispatch.h"


/* the operations of a device; while work is deferred, those that record it */
/* replaces operations of a table by those that are written as formulas
 * (ops/formulas.h) */
void       ops_by_formulas(Ops *ops);

#endif
