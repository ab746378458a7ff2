/* array_as.h: an array in another type, for as long as somebody reads it */
#ifndef OPS_ARRAY_AS_H
#define OPS_ARRAY_AS_H

#include "ops/array.h"

/* x if a matmul reads it as `type`, else a copy of its n elements */
Array array_as(Device *d, Array x, size_t n, Type type);
/* frees *copy, which array_as has made of x, unless it is x, and sets its address
 * to NULL */
void  array_as_end(Device *d, Array *copy, Array x);

#endif
