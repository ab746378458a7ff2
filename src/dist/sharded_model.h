/* sharded_model.h: an optimizer of a model, its state spread over the ranks */
#ifndef DIST_SHARDED_MODEL_H
#define DIST_SHARDED_MODEL_H

#include "dist/sharded_optimizer.h"

typedef struct ShardedModel ShardedModel;

/* one group of all parameters, each of which has one owner. Weights are equal on
 * all ranks, as after ddp_new, which comes first: hooks that the model has are
 * called as before. gradients are equal on all ranks after before_update */
ShardedModel *sharded_model_new(Model *m, Comm *c, const OptimizerKind *kind,
	OptimizerSettings settings);
/* gives back the hooks; before ddp_free */
void       sharded_model_free(ShardedModel **s);
/* the optimizer for timed_step, replayed_step and update_weights. It has no
 * state of its own; its settings may be changed between steps */
Optimizer *sharded_model_optimizer(ShardedModel *s);
const ShardedOptimizer *sharded_model_shares(const ShardedModel *s);
/* after weights and state were loaded: goes on behind step t */
void       sharded_model_set_step(ShardedModel *s, long t);

#endif
