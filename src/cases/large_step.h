/* large_step.h: one training step of a model of any shape on several ranks,
 * sustained */
#ifndef CASES_LARGE_STEP_H
#define CASES_LARGE_STEP_H

#include "bench/power.h"
#include "cases/sharding_case.h"

typedef struct LargeConfig {
	long vocabulary, d_model, d_ff, layers, heads, context;
	long batch;                      /* sequences of all ranks */
	int precision;
	/* tokens of which the head has logits at a time */
	long head_tokens, ranks;
} LargeConfig;
#define LARGE_SHAPE KEY(LargeConfig, vocabulary), KEY(LargeConfig, d_model), \
	KEY(LargeConfig, d_ff), KEY(LargeConfig, layers),                        \
	KEY(LargeConfig, heads), KEY(LargeConfig, context), KEY(LargeConfig, batch)
#define LARGE_KEYS LARGE_SHAPE, KEY(LargeConfig, precision, PRECISIONS), \
	KEY(LargeConfig, head_tokens), KEY(LargeConfig, ranks)
Shape large_shape(const LargeConfig *c);

typedef struct StepConfig {
	LargeConfig of;
	int strategy, transport, sums;   /* of STRATEGIES: zero2 or fsdp */
	int update;                      /* of UPDATES; early: zero2 only */
	long recompute;                  /* blocks at a time; 0: none */
	long memory_MiB;                 /* of a rank; 0: what its device has */
	bool deterministic;              /* attention's backward pass */
} StepConfig;
#define STEP_KEYS LARGE_KEYS, KEY(StepConfig, strategy, STRATEGIES), \
	KEY(StepConfig, update, UPDATES),                                    \
	KEY(StepConfig, transport, TRANSPORTS), KEY(StepConfig, sums, SUMS), \
	KEY(StepConfig, recompute), KEY(StepConfig, memory_MiB),             \
	KEY(StepConfig, deterministic)

/* seconds of steps before measuring, and measured; gemms: a file of matmuls'
 * algorithms, or NULL */
typedef struct StepLength {
	double warmup_s, measured_s;
	const char *gemms;
} StepLength;

/* fills the row of a step; all ranks of the row call it */
void large_step_run(Row *row, const StepConfig *c, const StepLength *length);
/* the same, of its memory alone */
void large_step_dry(Row *row, const StepConfig *c);

typedef struct TextRun {
	const char *path;                /* a text, whose bytes are the tokens */
	double rate;                     /* learning rate of all steps */
	long steps;
} TextRun;
/* the least number of bytes of such a text */
static inline size_t text_least(const LargeConfig *c)
{
	return 16 * (c->context + 1);
}

/* emits a row for each step, and one for the loss after the last */
void large_step_learn(Row *row, const StepConfig *c, const TextRun *how);

#endif
