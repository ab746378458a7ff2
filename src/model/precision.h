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

/* name; formats that matmuls read, that activations have, and that norms, RoPE
 * and softmax return; formats of master weights, gradients and residual stream;
 * do linear layers multiply in FP8? */
#define PRECISIONS_OF(FIRST, NEXT)                                         \
	FIRST(POLICY_FP32, "fp32", AUTOCAST(TYPE_REAL, TYPE_REAL))         \
	NEXT(POLICY_BF16, "bf16", AUTOCAST(BF16, BF16))                    \
	NEXT(POLICY_FP16, "fp16", AUTOCAST(FP16, FP16))                    \
	NEXT(POLICY_TF32, "tf32", AUTOCAST(TF32, TYPE_REAL))               \
	NEXT(POLICY_BF16_STREAM, "bf16-stream", BF16, BF16, BF16,          \
		TYPE_REAL, BF16, BF16, false)                              \
	NEXT(POLICY_BF16_STATE, "bf16-state", BF16, BF16, BF16,            \
		BF16, BF16, BF16, false)                                   \
	NEXT(POLICY_FP8, "fp8", BF16, BF16, TYPE_REAL,                     \
		TYPE_REAL, TYPE_REAL, TYPE_REAL, true)
#define AUTOCAST(READ, LOW) READ, LOW, TYPE_REAL, TYPE_REAL, TYPE_REAL, \
	TYPE_REAL, false
#define PRECISIONS CHOICES(PRECISIONS_OF)
enum { CHOICE_IDS(PRECISIONS_OF) NPOLICIES };
/* the policies of PyTorch, by autocast or its setting for TF32, come first */
enum { NAUTOCAST = POLICY_BF16_STREAM };
extern const Policy policies[NPOLICIES];
/* the format of gradients that travel in `wire`: the wire's where matmuls compute
 * in it, so that nothing is cast, else the policy's */
Type policy_gradient(const Policy *p, Type wire);

#endif
