/* part_of_model.h: a job of ranks that have a part each, and one such part */
#ifndef TESTS_PART_OF_MODEL_H
#define TESTS_PART_OF_MODEL_H

#include <math.h>

#include "dist/ddp.h"
#include "dist/tensor.h"
#include "tests/ops/compare.h"
#include "tests/dist/job.h"
#include "train/step.h"

// declare a job of parts
typedef struct Parts {
	int ranks, copies;
	Shape shape;
	size_t B, T;                     /* of a copy's batch */
	int policy;
	bool naive, sgd, nested;
	int recompute;
	ModelPlan plan;                  /* of the parts */
	int passes, steps;               /* backward passes of a step */
	double clip;
	int delay_us;
	bool gpus, exchange;             /* exchange: of the copies' gradients */
	bool replayed;                   /* steps of one pass */
	bool keep_norms;
	double tolerance;                /* of the largest of a tensor */
	/* of the model on one rank: (steps); tensors one after the other, gradients
	 * of the first step */
	double *losses;
	real *gradients, *weights;
	/* squared differences from the gradients, of all ranks; or NULL, and no
	 * tolerance is asked for */
	double *squares;
} Parts;

// make and step a part of a model
static inline Model *part_of(Device *d, const Parts *p, const RankGroup *g)
{
	Model *m = model_new_part(d, &p->shape, &policies[p->policy], 7, g);
	model_fuse(m);
	model_set_attention(m, !p->naive);
	model_recompute(m, p->recompute, p->nested);
	if (g)
		model_follow(m, &p->plan);
	return m;
}

static inline Optimizer optimizer_of(const Model *m, const Parts *p)
{
	Optimizer o = p->sgd ? sgd_new(m, 0.1, 0.9)
		: adamw_new(m, 1e-2, 0.9, 0.999, 1e-8, 0.01);
	o.settings.clip = p->clip;
	return o;
}

static inline double step_of(Model *m, Optimizer *o, Replay *replay,
	const Parts *p, int step, int copy)
{
	Batch b = batch_random(p->B, p->T, p->shape.vocab, step * 100 + copy * 10);
	double loss = replayed_step(replay, m, o, &b, MODE_TRAIN).loss;
	batch_free(&b);
	return loss;
}

static inline double pass_of(Model *m, const Parts *p, int step, int copy,
	int pass, bool add)
{
	Batch b = batch_random(p->B, p->T, p->shape.vocab,
		step * 100 + copy * 10 + pass);
	double loss = model_forward(m, b.tokens, b.targets, b.B, b.T, true);
	model_backward(m, add);
	batch_free(&b);
	return loss;
}

#endif
