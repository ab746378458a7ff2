/* model_plan.h: what a training step drops, so that it fits into memory */
#ifndef ESTIMATE_MODEL_PLAN_H
#define ESTIMATE_MODEL_PLAN_H

#include "estimate/memory_estimate.h"

/* finds a plan whose step, with AdamW, takes at most nbytes by the estimate,
 * and which computes as little again as possible; returns false if none
 * fits. by: the rank's shards, or NULL on one device. chunk: tokens whose
 * logits exist at a time, or 0 to try a few lengths, the longest first. The
 * model has to be fused and must not run blocks again */
bool model_plan(const Model *m, size_t B, size_t T, const Sharding *by,
	double nbytes, long chunk, ModelPlan *plan);
/* estimated bytes of a step under the plan */
double model_plan_bytes(const Model *m, size_t B, size_t T, const Sharding *by,
	const ModelPlan *plan);
/* has naive attention drop P along the fused path, if a step of mode that keeps
 * it does not fit into the device with a margin of a sixty-fourth */
void   model_fit_scores(Model *m, size_t B, size_t T, Mode mode);

#endif
