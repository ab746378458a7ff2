/* precision.h: the formats of each kind of operation, as autocast sets them */
#ifndef MODEL_PRECISION_H
#define MODEL_PRECISION_H

#include <stdbool.h>

#include "base/number.h"

typedef enum {
	OP_EMBEDDING, OP_NORM, OP_LINEAR, OP_ROPE, OP_SCORES, OP_SOFTMAX, OP_VALUES,
		OP_SWIGLU, OP_RESIDUAL, OP_RELU,
	OP_LAYERNORM, OP_LOSS, NKINDS
} OpKind;

typedef struct Policy {
	const char *name;
	/* formats of the master weights, which is also that of an optimizer's
	 * state, and of the gradients */
	Type parameter, gradient;
	struct { Type input, output; } op[NKINDS];
	bool fp8;                        /* linear layers of the blocks multiply so */
} Policy;

extern const char *const op_kind_names[NKINDS];
#define PRECISIONS "fp32|bf16|fp16|tf32|bf16-stream|bf16-state|fp8"
enum { POLICY_FP32, POLICY_BF16, POLICY_FP16, POLICY_TF32, POLICY_BF16_STREAM,
	POLICY_BF16_STATE, POLICY_FP8, NPOLICIES };
/* the policies of PyTorch, by autocast or its setting for TF32, come first */
enum { NAUTOCAST = POLICY_BF16_STREAM };
/* in the order of PRECISIONS */
extern const Policy policies[NPOLICIES];

#endif
