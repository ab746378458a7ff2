/* norm_rows.h: rows of a norm against its formulas */
#ifndef EXPERIMENTS_NORM_ROWS_H
#define EXPERIMENTS_NORM_ROWS_H

#include "ops/types.h"

typedef struct NormRows {
	size_t rows, C;
	Array x, dy, g, b, y, dx;
	double eps;
	bool centers;                    /* about the mean, and shifts */
} NormRows;

/* of y and dx, where dx was zero before one backward pass; dies of a wrong one */
void  norm_rows_check(Device *d, const NormRows *n, const char *name);
/* a row of an array; the caller frees it */
real *norm_row(Device *d, Array a, size_t row, size_t C);

#endif
