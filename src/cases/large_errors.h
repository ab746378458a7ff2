/* large_errors.h: how far a policy's numbers are from those of a reference,
 * beside how far PyTorch's are */
#ifndef CASES_LARGE_ERRORS_H
#define CASES_LARGE_ERRORS_H

#include "bench/row.h"
#include "cases/large_step.h"

/* sets shape and batch from the file; exits 2 if it holds no golden vectors */
void large_errors_shape(LargeConfig *to, const char *path);
/* emits the errors of each policy; c: tokens of a chunk of the head */
void large_errors_run(Row *row, const LargeConfig *c, const char *path,
	const int *policy, int npolicies);

#endif
