/* batch.h: tokens of a step and what is to follow each of them, on the host */
#ifndef TRAIN_BATCH_H
#define TRAIN_BATCH_H

#include <stddef.h>
#include <stdint.h>

typedef struct Batch {
	size_t B, T;
	int32_t *tokens, *targets;       /* (B, T) */
} Batch;

/* tokens and targets below vocab, drawn from the seed */
Batch batch_random(size_t B, size_t T, long vocab, uint64_t seed);
void  batch_free(Batch *b);

#endif
