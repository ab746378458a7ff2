#include "ops/ops.h"

#include "ops/formulas.h"

void ops_by_formulas(Ops *ops)
{
#define OPERATION(TYPE, NAME, PARAMETERS)
#define FORMULA(TYPE, NAME, PARAMETERS) ops->NAME = formula_##NAME;
#include "ops/list.h"
#undef OPERATION
}
