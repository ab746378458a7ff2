/* sharded_optimizer.h: optimizers whose state is spread over the ranks; knows
 * parameters, and no model */
#ifndef DIST_SHARDED_OPTIMIZER_H
#define DIST_SHARDED_OPTIMIZER_H

#include "dist/comm.h"
#include "train/optimizer.h"

typedef struct ShardedParam {
	Span span;                       /* its gradient does not matter */
	/* it is never updated, has no owner, and travels nowhere */
	bool frozen;
} ShardedParam;

typedef struct ShardedOptimizer ShardedOptimizer;

/* All ranks make the same calls of these, in one order. Weights are equal on all
 * ranks when a parameter is added; they and what matmuls read of them are fp32
 * or bf16, and stay where they are */
ShardedOptimizer *sharded_new(Device *device, Comm *comm, bool fused);
void   sharded_free(ShardedOptimizer **o);
/* n parameters, of which each but the frozen ones gets an owner, who alone has
 * its state, zeros at first. Returns the group's number. Ends the program when
 * ranks add groups of other sizes */
int    sharded_add_group(ShardedOptimizer *o, const OptimizerKind *kind,
	OptimizerSettings settings, const ShardedParam *params, int n);
OptimizerSettings sharded_settings(const ShardedOptimizer *o, int group);
/* from the next step on */
void   sharded_set(ShardedOptimizer *o, int group, OptimizerSettings settings);
/* queues a step, after which all ranks have the owners' weights. gradients: of
 * all parameters so far, as they were added; at NULL on the owner: the parameter,
 * its state and the number of its steps stay as they are. They are multiplied by
 * unscale, and clipped by the norm of their group. Nothing changes when *skip is
 * not 0 */
void   sharded_step(ShardedOptimizer *o, const Array *gradients, double unscale,
	const int32_t *skip);
/* the last step was skipped, and does not count */
void   sharded_undo(ShardedOptimizer *o);
int    sharded_params(const ShardedOptimizer *o);
/* of parameter i; -1: it is frozen */
int    sharded_owner(const ShardedOptimizer *o, int i);
/* elements that the rank owns */
size_t sharded_load(const ShardedOptimizer *o, int rank);
const OptimizerKind *sharded_kind(const ShardedOptimizer *o, int group);
/* state k of parameter i, on its owner; elsewhere, or without such a state, at is
 * NULL */
Array  sharded_state(const ShardedOptimizer *o, int i, int k);
/* after weights and state were loaded: each parameter has had t steps */
void   sharded_set_steps(ShardedOptimizer *o, long t);

#endif
