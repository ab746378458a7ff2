/* passes.h: how ranks train, and passes over their parts of a batch */
#ifndef TESTS_PASSES_H
#define TESTS_PASSES_H

#include "train/step.h"

enum { STEPS = 20, B = 2, T = 6 };

typedef struct Scenario {
	int ranks;
	const char *transport;
	const Shape *shape;
	int policy;
	Type wire;
	bool fused, replayed, sgd, clips, exchange;
	int passes, delay_us;            /* backward passes of a step */
	/* of shards alone */
	bool nested, early;
	int recompute;
	real *want, *got;                /* weights; of each plan and rank */
} Scenario;

static inline Batch part_of_batch(const Shape *s, int step, int rank, int pass)
{
	return batch_random(B, T, s->vocab, step * 100 + rank * 10 + pass);
}

static inline void pass(Model *m, const Batch *b, bool accumulate)
{
	model_forward(m, b->tokens, b->targets, b->B, b->T, true);
	model_backward(m, accumulate);
}

#endif
