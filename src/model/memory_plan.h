/* memory_plan.h: how a pass saves memory */
#ifndef MODEL_MEMORY_PLAN_H
#define MODEL_MEMORY_PLAN_H

#include <stdbool.h>

typedef struct ModelPlan {
	/* tokens whose logits exist at a time, in a pass with targets, which then
	 * leaves no logits. 0: all tokens at once */
	long head_chunk;
	/* how many of the first blocks drop gate and up, and how many drop queries,
	 * keys and values; the backward pass computes them again */
	int drop_gate_up, drop_qkv;
	/* in FP8: weights keep no codes, and are cast where they are read; how many
	 * of the first blocks keep no codes of what their layers read, which the
	 * backward pass then casts again */
	bool drop_weight_codes;
	int drop_codes;
	/* naive attention keeps no P along the fused path, and makes it again */
	bool drop_scores;
} ModelPlan;

#endif
