#include "model/precision.h"

#include "ops/ops.h"

const char *const op_kind_names[NKINDS] = {
	"embedding", "norm", "linear", "rope", "scores", "softmax", "values",
		"swiglu", "residual", "relu",
	"layernorm", "loss",
};

#define MIXED(NAME, LOW) {                                          \
	.name = NAME, .parameter = TYPE_REAL, .gradient = TYPE_REAL, .op = { \
		[OP_EMBEDDING] = { TYPE_REAL, TYPE_REAL },          \
		[OP_NORM]      = { TYPE_REAL, LOW },                \
		[OP_LINEAR]    = { LOW, LOW },                      \
		[OP_ROPE]      = { LOW, LOW },                      \
		[OP_SCORES]    = { LOW, LOW },                      \
		[OP_SOFTMAX]   = { TYPE_REAL, LOW },                \
		[OP_VALUES]    = { LOW, LOW },                      \
		[OP_SWIGLU]    = { LOW, LOW },                      \
		[OP_RESIDUAL]  = { TYPE_REAL, TYPE_REAL },          \
		[OP_RELU]      = { LOW, LOW },                      \
		[OP_LAYERNORM] = { TYPE_REAL, TYPE_REAL },          \
		[OP_LOSS]      = { TYPE_REAL, TYPE_REAL },          \
	} }

const Policy policies[] = {
	MIXED("fp32", TYPE_REAL),
	MIXED("bf16", BF16),
	MIXED("fp16", FP16),
};
