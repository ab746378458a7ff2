/* operations.c: the operations of a GPU: formulas, and kernels for all others */
#include "ops/cuda/cuda.h"
#include "ops/dispatch.h"
#include "ops/formulas.h"

const Ops cuda_ops = {
#define OPERATION(TYPE, NAME, PARAMETERS) .NAME = cuda_##NAME,
#define FORMULA(TYPE, NAME, PARAMETERS) .NAME = formula_##NAME,
#include "ops/list.h"
#undef OPERATION
	.attention_kernels = cuda_attention_kernels,
};
