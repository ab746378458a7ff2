/* buffers.h: arrays that the paths allocate, cast and drop */
#ifndef MODEL_BUFFERS_H
#define MODEL_BUFFERS_H

#include "model/state.h"

#define NORM_EPS 1e-5   /* of every RMSNorm, as in the staff model */

Array temporary(Model *m, size_t n, Type type, const char *what);
/* n elements of the type that the policy gives to results of this kind */
Array activation(Model *m, size_t n, OpKind kind, const char *what);
/* n statistics of rows (a norm's factor, a logsumexp), of TYPE_REAL */
Array statistic(Model *m, size_t n, const char *what);
/* frees the array, if there is one, and sets at to NULL */
void  array_drop(Model *m, Array *a);
/* x itself if matmuls can read it as that type, else a temporary copy of n
 * elements; release_cast frees the copy, if one was made of x */
Array cast_if_needed(Model *m, Array x, size_t n, Type type);
void  release_cast(Model *m, Array *copy, Array x);

#endif
