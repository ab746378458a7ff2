/* ffn.h: a feed-forward layer on a mesh of devices: what a pass computes and
 * sends, by formulas and counted on an explicit schedule */
#ifndef EXPERIMENTS_FFN_H
#define EXPERIMENTS_FFN_H

#include "experiments/cluster.h"

enum { NBYTES = 2 };                /* of a weight or an activation: bf16 */

/* y = (f(x W1) * x W2) W3, without a gate y = f(x W1) W3; x: (B, D) */
typedef struct Ffn {
	size_t B, D, F;
	bool gated;
	size_t X, Y;        /* the batch is split along X, F along Y */
	bool sharded;       /* weights are split along X too (FSDP); else each
	                     * device has its part of F whole */
} Ffn;

typedef enum Pass { FORWARD, BACKWARD, PASSES } Pass;

/* FLOPs of the device that has most; along each axis the most bytes that any
 * device sends in a step, summed over steps */
typedef struct Cost {
	double flops, nbytes[AXES];
} Cost;

/* by formula: shares may be fractions of rows */
Cost ffn_cost(const Ffn *f, Pass pass);
/* counted, step by step, in whole rows and columns */
void ffn_count(const Ffn *f, Cost cost[PASSES]);
/* counted while small integers are really computed with and sent; dies unless
 * each device has the output and the gradients that one device computes, and
 * unless those of one device are derivatives, by differences, if it is small */
void ffn_run(const Ffn *f, Cost cost[PASSES]);

#endif
