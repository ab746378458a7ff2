/* zero.h: sharded data parallelism (ZeRO, stages 1 to 3; stage 3: FSDP) */
#ifndef DIST_ZERO_H
#define DIST_ZERO_H

#include "dist/zero_state.h"

// declare a sharded model's life
/* m: from model_new_bare, its path and fusion chosen. Its weights are those that
 * model_new draws from the same seed; each rank draws its shards. Takes the
 * model's hooks, and sets its share of the loss to 1/ranks. All ranks call it,
 * with equal arguments. The policies fp16 and, where fused matmuls read copies in
 * it, tf32 exit 2 */
Zero     *zero_new(Model *m, Comm *c, const ZeroSettings *settings,
	const OptimizerKind *kind, OptimizerSettings optimizer);
/* before the model and the communicator are freed; the model is bare again */
void      zero_free(Zero **zero);
/* the optimizer for timed_step and the others. Only settings and t may be
 * changed */
Optimizer *zero_optimizer(Zero *z);
/* off: gradients stay as they are, for passes that only accumulate: all passes of
 * a step but the last. In stages 2 and 3, and with exchange, such a step needs
 * memory for all gradients, until its update is done */
void      zero_sync(Zero *z, bool on);
const ShardMap *zero_map(const Zero *z);

// declare the pieces that a rank owns
/* the rank's part of a parameter: n elements from element `begin` of the tensor
 * on. A gain is whole and replicated on all ranks */
typedef struct ZeroPiece {
	const Parameter *about;
	size_t begin, n;
	bool replicated;
	/* state[k].at NULL: the optimizer has no such state */
	Array master, state[MOST_STATES];
} ZeroPiece;
/* pieces has room for shape_nparameters. Returns how many. The compute queue
 * waits for gathers under way, so what it does next may write masters */
int       zero_pieces(const Zero *z, ZeroPiece *pieces);
/* after masters were written other than by the optimizer. All ranks call it */
void      zero_weights_changed(Zero *z);
/* the masters of all parameters, in order, shape_count elements. All ranks call
 * it; the host waits */
void      zero_read_weights(Zero *z, real *host);

#endif
