/* ops/list.h: OPERATION(type, name, parameters) for every operation */
#include "ops/list_elementary.h"
#include "ops/list_layers.h"
#include "ops/list_training.h"
#include "ops/list_fused.h"
#include "ops/list_fp8.h"
