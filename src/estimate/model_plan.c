#include "estimate/model_plan.h"

#include <assert.h>

// estimate a step under a plan
double model_plan_bytes(const Model *m, size_t B, size_t T, const Sharding *by,
	const ModelPlan *plan)
{
	Model planned = *m;
	planned.plan = *plan;
	return by ? memory_estimate_sharded(&planned, B, T, by).total
		: memory_estimate(&planned, B, T, true).total;
}

// find how little blocks must drop
/* sets how many blocks drop what, so that the plan fits and drops least;
 * returns false if none fits */
static bool drop_least(const Model *m, size_t B, size_t T, const Sharding *by,
	double nbytes, ModelPlan *plan)
{
	int L = (int)m->shape.layers;
	double gate_up = 2.0 * m->shape.d_ff,
		qkv = 3.0 * m->shape.heads * m->shape.d_head, least = 0;
	ModelPlan p = *plan;
	bool found = false;
	for (p.drop_gate_up = 0; p.drop_gate_up <= L; p.drop_gate_up++)
		for (p.drop_qkv = 0; p.drop_qkv <= L; p.drop_qkv++) {
			double dropped = p.drop_gate_up * gate_up + p.drop_qkv * qkv;
			if ((found && dropped >= least)
				|| model_plan_bytes(m, B, T, by, &p) > nbytes)
				continue;
			*plan = p;
			least = dropped;
			found = true;
		}
	return found;
}

// try chunks from the longest to the shortest
bool model_plan(const Model *m, size_t B, size_t T, const Sharding *by,
	double nbytes, long chunk, ModelPlan *plan)
{
	static const long usual[] = { 4096, 1024, 256, 64 };
	const long *chunks = chunk ? &chunk : usual, N = (long)(B * T);
	int n = chunk ? 1 : 4;
	assert(m->fused && m->checkpoint_every == 0);
	*plan = (ModelPlan){ .head_chunk = chunk };
	if (model_plan_bytes(m, B, T, by, plan) <= nbytes)
		return true;
	for (int i = 0; i < n; i++) {
		*plan = (ModelPlan){ .head_chunk = chunks[i] };
		if (chunks[i] < N && drop_least(m, B, T, by, nbytes, plan))
			return true;
	}
	if (N > chunks[n - 1])
		return false;
	*plan = (ModelPlan){ 0 };
	return drop_least(m, B, T, by, nbytes, plan);
}
