#include "estimate/model_plan.h"

#include <assert.h>
#include <math.h>

// estimate a step under a plan
static bool fits(DryRun *r, const ModelPlan *plan, double nbytes)
{
	return dry_run_step(r, plan).total <= nbytes;
}

double model_plan_bytes(const Model *m, size_t B, size_t T, const Sharding *by,
	const ModelPlan *plan)
{
	DryRun *r = dry_run_new(m, B, T, MODE_TRAIN, by);
	double nbytes = dry_run_step(r, plan).total;
	dry_run_free(&r);
	return nbytes;
}

// find how little blocks must drop
/* sets count, a number of blocks in p, to the fewest under which p fits; false,
 * with all blocks, if none do */
static bool fewest(DryRun *r, int layers, double nbytes, const ModelPlan *p,
	int *count)
{
	int low = 0, high = layers - 1;
	*count = high;
	if (!fits(r, p, nbytes)) {
		*count = layers;
		return fits(r, p, nbytes);
	}
	while (low < high) {
		*count = (low + high) / 2;
		if (fits(r, p, nbytes))
			high = *count;
		else
			low = *count + 1;
	}
	*count = low;
	return true;
}

/* sets how many blocks drop what, so that the plan fits and drops least;
 * returns false if none fits */
static bool drop_least(DryRun *r, const Model *m, double nbytes, ModelPlan *plan)
{
	const Shape *shape = &m->shape;
	int L = (int)shape->layers;
	double gate_up = 2.0 * shape->d_ff,
		qkv = 3.0 * shape->heads * shape->d_head, least = INFINITY;
	ModelPlan p = *plan;
	p.drop_weight_codes = m->fp8 != NULL;
	if (m->fp8 && fewest(r, L, nbytes, &p, &p.drop_codes)) {
		*plan = p;
		return true;
	}
	for (p.drop_gate_up = 0; p.drop_gate_up <= L
		&& p.drop_gate_up * gate_up < least; p.drop_gate_up++) {
		bool found = fewest(r, L, nbytes, &p, &p.drop_qkv);
		double dropped = p.drop_gate_up * gate_up + p.drop_qkv * qkv;
		if (!found || dropped >= least)
			continue;
		*plan = p;
		least = dropped;
	}
	return least < INFINITY;
}

// try chunks from the longest to the shortest
static bool find_plan(DryRun *r, const Model *m, long N, double nbytes,
	long chunk, ModelPlan *plan)
{
	static const long usual[] = { 4096, 1024, 256, 64 };
	const long *chunks = chunk ? &chunk : usual;
	int n = chunk ? 1 : 4;
	*plan = (ModelPlan){ .head_chunk = chunk };
	if (fits(r, plan, nbytes))
		return true;
	for (int i = 0; i < n; i++) {
		*plan = (ModelPlan){ .head_chunk = chunks[i] };
		if (chunks[i] < N && drop_least(r, m, nbytes, plan))
			return true;
	}
	if (N > chunks[n - 1])
		return false;
	*plan = (ModelPlan){ 0 };
	return drop_least(r, m, nbytes, plan);
}

bool model_plan(const Model *m, size_t B, size_t T, const Sharding *by,
	double nbytes, long chunk, ModelPlan *plan)
{
	assert(m->fused && m->checkpoint_every == 0);
	DryRun *r = dry_run_new(m, B, T, MODE_TRAIN, by);
	bool found = find_plan(r, m, (long)(B * T), nbytes, chunk, plan);
	dry_run_free(&r);
	return found;
}

// decide whether probabilities are kept
void model_fit_scores(Model *m, size_t B, size_t T, Mode mode)
{
	m->plan.drop_scores = false;
	if (!m->fused || m->flash)
		return;
	DryRun *r = dry_run_new(m, B, T, mode, NULL);
	MemoryEstimate e = dry_run_step(r, &m->plan);
	dry_run_free(&r);
	m->plan.drop_scores = e.total + e.workspace
		> m->device->limit / 64.0 * 63;
}
