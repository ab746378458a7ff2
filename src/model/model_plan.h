/* model_plan.h: what a training step drops, so that it fits into memory */
#ifndef MODEL_MODEL_PLAN_H
#define MODEL_MODEL_PLAN_H

#include "model/memory_estimate.h"

/* a plan whose step, with AdamW, takes at most nbytes by the estimate: of those
 * with its chunk the one that computes least again. by: the rank's, or NULL on
 * one device; chunk: tokens of which there are logits at a time, 0: the first
 * of a few lengths, from the longest on, with which a plan fits. The model is
 * fused and runs no blocks again. false: none fits */
bool model_plan(const Model *m, size_t B, size_t T, const Sharding *by,
	double nbytes, long chunk, ModelPlan *plan);
/* bytes of a step under the plan, by the same estimate */
double model_plan_bytes(const Model *m, size_t B, size_t T, const Sharding *by,
	const ModelPlan *plan);

#endif
