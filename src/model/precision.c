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

#define POLICY_OF(id, ...) POLICY(__VA_ARGS__),
const Policy policies[NPOLICIES] = { PRECISIONS_OF(POLICY_OF, POLICY_OF) };

Type policy_gradient(const Policy *p, Type wire)
{
	return p->op[OP_LINEAR].input == wire ? wire : p->gradient;
}
