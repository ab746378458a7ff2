/* gradients.h: gradients that an operation sums as it reads them */
#ifndef OPS_GRADIENTS_H
#define OPS_GRADIENTS_H

#include "ops/array.h"

enum { MOST_GRADIENTS = 8 };
/* gradients of one array, which the operation that takes them sums in this
 * order, in fp32 or wider */
typedef struct Gradients {
	int n;                          /* at least 1 */
	Array at[MOST_GRADIENTS];       /* of one type */
} Gradients;

static inline Gradients one_gradient(Array g)
{
	Gradients one = { 1, { g } };
	return one;
}

#endif
