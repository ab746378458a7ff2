/* types.h: what operations work on, an umbrella */
#ifndef OPS_TYPES_H
#define OPS_TYPES_H

#include "ops/array.h"
#include "ops/attention_types.h"
#include "ops/fp8_types.h"
#include "ops/gradients.h"
#include "ops/matmul.h"
#include "ops/norm_types.h"
#include "ops/update_types.h"

struct Elementary;     /* ops/elementary.h */

#endif
