/* memory_estimate.h: the bytes that a training step holds, by a dry run of it */
#ifndef ESTIMATE_MEMORY_ESTIMATE_H
#define ESTIMATE_MEMORY_ESTIMATE_H

#include "dist/zero.h"
#include "train/step.h"

typedef struct MemoryEstimate {
	double category[NCATEGORIES];    /* bytes of each, where it has most */
	double total;                    /* bytes, where all together have most */
	/* bytes of workspaces that stay after a step, no part of the others */
	double workspace;
} MemoryEstimate;
/* a rank of a job that trains by ZeRO */
typedef struct Sharding {
	int rank, ranks;
	ZeroSettings settings;
} Sharding;

// declare a dry run
/* a forward and a backward pass of B sequences of T tokens, and AdamW's update if
 * `train`, on a device like m's */
MemoryEstimate memory_estimate(const Model *m, size_t B, size_t T, bool train);
/* a step of one rank, with AdamW's update; m is its model, whose weights are not
 * asked for */
MemoryEstimate memory_estimate_sharded(const Model *m, size_t B, size_t T,
	const Sharding *s);
/* total bytes of a forward pass that keeps nothing, without AdamW's */
double  memory_estimate_forward(const Model *m, size_t B, size_t T);
/* bytes that one block saves for its backward pass, by the derivation */
double  memory_estimate_block(const Model *m, size_t B, size_t T);

/* a model like m on a dry device of its own, for steps of mode; by: the rank's
 * shards, or NULL */
typedef struct DryRun DryRun;
DryRun        *dry_run_new(const Model *m, size_t B, size_t T, Mode mode,
	const Sharding *by);
/* a step under the plan */
MemoryEstimate dry_run_step(DryRun *r, const ModelPlan *plan);
void           dry_run_free(DryRun **r);

#endif
