/* formulas.h: operations by elementary operations, on any device: formula_NAME
 * does what NAME does, for each FORMULA of ops/list.h */
#ifndef OPS_FORMULAS_H
#define OPS_FORMULAS_H

#include "ops/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OPERATION(TYPE, NAME, PARAMETERS)
#define FORMULA(TYPE, NAME, PARAMETERS) TYPE formula_##NAME PARAMETERS;
#include "ops/list.h"
#undef OPERATION

#ifdef __cplusplus
}
#endif

#endif
