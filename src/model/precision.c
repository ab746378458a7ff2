#include "model/precision.h"

#include "ops/ops.h"

// state a policy with some formats left open
#define POLICY(NAME, READ, LOW, WIDE, PARAMETER, GRADIENT, STREAM, FP8) { \
	.name = NAME, .parameter = PARAMETER, .gradient = GRADIENT, .fp8 = FP8, \
	.op = { \
		[OP_EMBEDDING] = { TYPE_REAL, STREAM },             \
		[OP_NORM]      = { TYPE_REAL, WIDE },               \
		[OP_LINEAR]    = { READ, LOW },                     \
		[OP_ROPE]      = { LOW, WIDE },                     \
		[OP_SCORES]    = { READ, LOW },                     \
		[OP_SOFTMAX]   = { TYPE_REAL, WIDE },               \
		[OP_VALUES]    = { READ, LOW },                     \
		[OP_SWIGLU]    = { LOW, LOW },                      \
		[OP_RESIDUAL]  = { TYPE_REAL, STREAM },             \
		[OP_RELU]      = { LOW, LOW },                      \
		[OP_LAYERNORM] = { TYPE_REAL, TYPE_REAL },          \
		[OP_LOSS]      = { TYPE_REAL, TYPE_REAL },          \
	} }

#define MIXED(NAME, READ, LOW) \
	POLICY(NAME, READ, LOW, TYPE_REAL, TYPE_REAL, TYPE_REAL, TYPE_REAL, false)

const Policy policies[NPOLICIES] = {
	MIXED("fp32", TYPE_REAL, TYPE_REAL),
	MIXED("bf16", BF16, BF16),
	MIXED("fp16", FP16, FP16),
	MIXED("tf32", TF32, TYPE_REAL),
	POLICY("bf16-stream", BF16, BF16, BF16, TYPE_REAL, BF16, BF16, false),
	POLICY("bf16-state", BF16, BF16, BF16, BF16, BF16, BF16, false),
	POLICY("fp8", BF16, BF16, TYPE_REAL, TYPE_REAL, TYPE_REAL, TYPE_REAL, true),
};
