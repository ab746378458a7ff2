/* ffn.h: a feed-forward layer on a mesh of devices: what a pass computes and
 * sends, by formulas and counted on an explicit schedule */
#ifndef CASES_FFN_H
#define CASES_FFN_H

#include "base/choices.h"
#include "cases/cluster.h"

enum { NBYTES = 2 };                /* of a weight or an activation: bf16 */

/* y = (f(x W1) * x W2) W3, without a gate y = f(x W1) W3; x: (B, D) */
typedef struct Ffn {
	size_t B, D, F;
	bool gated;
	size_t X, Y;        /* the batch is split along X, F along Y */
	bool sharded;       /* weights are split along X too (FSDP); else each
	                     * device has its part of F whole */
} Ffn;

#define FFN_PASSES_OF(FIRST, NEXT) \
	FIRST(FORWARD, "forward") NEXT(BACKWARD, "backward")
#define FFN_PASSES CHOICES(FFN_PASSES_OF)
typedef enum FfnPass { CHOICE_IDS(FFN_PASSES_OF) PASSES } FfnPass;

/* FLOPs of the device that has most; along each axis the most bytes that any
 * device sends in a step, summed over steps */
typedef struct FfnCost {
	double flops, nbytes[AXES];
} FfnCost;

/* the cost of a pass by formula, in which shares may be fractions of rows */
FfnCost ffn_cost(const Ffn *f, FfnPass pass);
/* counts an explicit schedule, step by step, in whole rows and columns */
void ffn_count(const Ffn *f, FfnCost cost[PASSES]);
/* counts as ffn_count does, and computes and sends small integers. Ends the
 * program unless each device has the output and the gradients of one device
 * alone and, for small layers, these are derivatives by differences */
void ffn_run(const Ffn *f, FfnCost cost[PASSES]);

#endif
