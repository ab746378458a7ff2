/* stages.h: ranks that train by a stage of ZeRO, or by data parallelism */
#ifndef TESTS_STAGES_H
#define TESTS_STAGES_H

#include "dist/ddp.h"
#include "dist/zero.h"
#include "tests/ops/compare.h"
#include "tests/dist/job.h"
#include "tests/dist/passes.h"

// declare shapes and stages
static const Shape shapes[] = {
	{ 31, T, 12, 10, 2, 3, 4, 10000 },          /* gaps between its units */
	{ 64, T, 8, 16, 4, 2, 4, 10000 },           /* none */
	{ 3, T, 4, 1, 3, 1, 4, 10000 },             /* shards that are empty */
	{ 64, T, 128, 256, 3, 4, 32, 10000 },       /* all aligned to 256 bytes */
};

static const ZeroSettings plans[] = {
	{ .stage = 1 }, { .stage = 1, .bucket_mb = 0.006 },
	{ .stage = 2 }, { .stage = 2, .bucket_mb = 1000 },
	{ .stage = 3, .prefetch = 0 }, { .stage = 3, .prefetch = 1 },
	{ .stage = 3, .prefetch = 2 },
	{ .stage = 3, .prefetch = 1, .bucket_mb = 0.006 },
};
enum { NPLANS = sizeof plans / sizeof *plans };
/* a scenario's want: (ranks, count), by data parallelism; got: (NPLANS, ranks,
 * count) */

// make a model that is sharded
static inline OptimizerSettings settings_of(const Scenario *s)
{
	return (OptimizerSettings){ .lr = s->sgd ? 0.1 : 1e-2, .beta1 = 0.9,
		.beta2 = 0.999, .eps = 1e-8, .decay = 0.01, .momentum = 0.9,
		.clip = s->clips ? 0.5 : 0 };
}

static inline void prepare(Model *m, const Scenario *s)
{
	if (s->fused)
		model_fuse(m);
	model_recompute(m, s->recompute, s->nested);
}

static inline Zero *new_zero(Device *d, Comm *c, const Scenario *s,
	ZeroSettings plan, Model **m)
{
	*m = model_new_bare(d, s->shape, &policies[s->policy], 7);
	prepare(*m, s);
	plan.wire = s->wire;
	plan.exchange = s->exchange;
	plan.early = s->early && plan.stage == 2;
	plan.poison = true;
	return zero_new(*m, c, &plan, s->sgd ? &sgd_kind : &adamw_kind,
		settings_of(s));
}

// train by stages, or by data parallelism
typedef struct Trained {
	Model *m;
	Optimizer *o;
	Ddp *ddp;                        /* or */
	Zero *zero;
	Replay replay;
} Trained;

static inline void sync_pass(Trained *t, bool on)
{
	if (t->ddp)
		ddp_sync(t->ddp, on);
	else
		zero_sync(t->zero, on);
}

static inline void evaluate(Model *m, const Scenario *s, int rank)
{
	Batch b = part_of_batch(s->shape, STEPS, rank, 0);
	model_forward(m, b.tokens, b.targets, b.B, b.T, false);
	batch_free(&b);
}

static inline void train(Trained *t, const Scenario *s, int rank)
{
	for (int step = 0; step < STEPS; step++) {
		int passes = step % 3 == 0 ? 1 : s->passes;
		// make the passes of a step
		for (int i = 0; i < passes; i++) {
			Batch b = part_of_batch(s->shape, step, rank, i);
			if (s->passes > 1) {
				sync_pass(t, i == passes - 1);
				pass(t->m, &b, i > 0);
			} else if (s->replayed) {
				replayed_step(&t->replay, t->m, t->o, &b, MODE_TRAIN);
			} else {
				timed_step(t->m, t->o, &b, MODE_TRAIN);
			}
			batch_free(&b);
		}
		if (s->passes > 1)
			update_weights(t->m, t->o);
		if (step % 4 == 1)
			evaluate(t->m, s, rank);
	}
	replay_free(&t->replay, t->m->device);
}

#endif
