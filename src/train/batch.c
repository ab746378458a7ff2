#include "train/batch.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"

Batch batch_random(size_t B, size_t T, long vocab, uint64_t seed)
{
	Batch b = { B, T, need(malloc(B * T * sizeof(int32_t))),
		need(malloc(B * T * sizeof(int32_t))) };
	for (size_t i = 0; i < B * T; i++) {
		b.tokens[i] = (int32_t)(random_bits(seed, 1, i) % vocab);
		b.targets[i] = (int32_t)(random_bits(seed, 2, i) % vocab);
	}
	return b;
}

void batch_free(Batch *b)
{
	free(b->tokens);
	free(b->targets);
}
