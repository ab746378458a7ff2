/* passes.h: passes over a rank's part of a batch, and how many */
#ifndef TESTS_PASSES_H
#define TESTS_PASSES_H

#include "train/step.h"

enum { STEPS = 20, B = 2, T = 6 };

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
