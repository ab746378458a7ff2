/* sharded_optimizer.h: optimizers whose state is spread over the ranks; knows
 * parameters, and no model */
#ifndef DIST_SHARDED_OPTIMIZER_H
#define DIST_SHARDED_OPTIMIZER_H

#include "dist/comm.h"
#include "train/optimizer.h"

// declare a parameter of the sharded optimizer
typedef struct ShardedParam {
	Span span;                       /* the weight, without its gradient */
	/* a frozen parameter is never updated, has no owner, and travels nowhere */
	bool frozen;
} ShardedParam;

typedef struct ShardedOptimizer ShardedOptimizer;

// declare sharded steps
/* All ranks make the same calls of these, in one order. Weights are equal on all
 * ranks when a parameter is added; they and what matmuls read of them are fp32
 * or bf16, and stay where they are */
ShardedOptimizer *sharded_new(Device *device, Comm *comm, bool fused);
void   sharded_free(ShardedOptimizer **o);
/* adds n parameters. Each that is not frozen gets an owner, who alone has its
 * state, zeros at first. Returns the group's number. Ends the program when ranks
 * add groups of other sizes */
int    sharded_add_group(ShardedOptimizer *o, const OptimizerKind *kind,
	OptimizerSettings settings, const ShardedParam *params, int n);
OptimizerSettings sharded_settings(const ShardedOptimizer *o, int group);
/* changes the settings from the next step on */
void   sharded_set(ShardedOptimizer *o, int group, OptimizerSettings settings);
/* queues a step, after which all ranks have the owners' weights. gradients:
 * of all parameters so far, in the order in which they were added; NULL on
 * the owner: the parameter, its state and the number of its steps stay as
 * they are. Gradients are multiplied by unscale, and clipped by the norm of
 * their group. Nothing changes when *skip is not 0 */
void   sharded_step(ShardedOptimizer *o, const Array *gradients, double unscale,
	const int32_t *skip);
/* the last step was skipped, and does not count */
void   sharded_undo(ShardedOptimizer *o);

// declare questions about owners and states
int    sharded_params(const ShardedOptimizer *o);
/* rank that owns parameter i; -1: the parameter is frozen */
int    sharded_owner(const ShardedOptimizer *o, int i);
/* elements that the rank owns */
size_t sharded_load(const ShardedOptimizer *o, int rank);
const OptimizerKind *sharded_kind(const ShardedOptimizer *o, int group);
/* state k of parameter i, on its owner; `at` is NULL on other ranks, and
 * where the optimizer has no such state */
Array  sharded_state(const ShardedOptimizer *o, int i, int k);
/* after weights and state were loaded: counts t steps for each parameter */
void   sharded_set_steps(ShardedOptimizer *o, long t);

#endif
