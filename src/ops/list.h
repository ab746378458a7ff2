/* ops/list.h: OPERATION(type, name, parameters) for every operation. Those that
 * ops/formulas.c makes of elementary operations are FORMULA(...), which means
 * the same unless whoever includes this has defined it */
#ifndef FORMULA
#define FORMULA OPERATION
#endif
#include "ops/list_elementary.h"
#include "ops/list_layers.h"
#include "ops/list_training.h"
#include "ops/list_fused.h"
#include "ops/list_fp8.h"
#undef FORMULA
