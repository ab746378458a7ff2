/* formulas.h: operations of ops/list.h by elementary operations, on any device;
 * formula_NAME does what NAME does */
#ifndef OPS_FORMULAS_H
#define OPS_FORMULAS_H

#include "ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OPERATION(TYPE, NAME, PARAMETERS) TYPE formula_##NAME PARAMETERS;
#include "ops/list.h"
#undef OPERATION
/* takes them into a table */
void formulas_into(Ops *ops);

#ifdef __cplusplus
}
#endif

#endif
