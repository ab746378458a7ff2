#include "ops/ops.h"

#include "ops/formulas.h"

void ops_by_formulas(Ops *ops)
{
	ops->fill = formula_fill;
	ops->cast = formula_cast;
	ops->add = formula_add;
	ops->relu_forward = formula_relu_forward;
	ops->relu_backward = formula_relu_backward;
	ops->rmsnorm_forward = formula_rmsnorm_forward;
	ops->rmsnorm_backward = formula_rmsnorm_backward;
	ops->rope = formula_rope;
	ops->softmax_forward = formula_softmax_forward;
	ops->softmax_backward = formula_softmax_backward;
	ops->swiglu_forward = formula_swiglu_forward;
	ops->swiglu_backward = formula_swiglu_backward;
	ops->cross_entropy_forward = formula_cross_entropy_forward;
	ops->cross_entropy_backward = formula_cross_entropy_backward;
	ops->adamw = formula_adamw;
}
