/* norm_rows.h: rows on which norms are timed, and the formulas of the norms */
#ifndef EXPERIMENTS_NORM_ROWS_H
#define EXPERIMENTS_NORM_ROWS_H

#include "ops/ops.h"

#define ROWS_EPS 1e-5
typedef struct NormRows {
	Device *device;
	const Ops *ops;
	size_t rows, C;
	Array x, y, dy, dx;              /* (rows, C), of one type */
	Array g, b, dg, db;              /* (C) */
	Array mean, rho;                 /* (rows) */
} NormRows;
/* with random numbers in all arrays */
NormRows norm_rows_new(Device *d, size_t rows, size_t C, Type type);
void     norm_rows_free(NormRows *n);

/* passes over NormRows, each a Work */
void  norm_rows_rmsnorm(void *rows);
void  norm_rows_rmsnorm_back(void *rows);
void  norm_rows_layernorm(void *rows);
void  norm_rows_layernorm_back(void *rows);

/* of y and dx, where dx was zero before one backward pass; dies of a wrong one.
 * centers: about the mean, and shifts */
void  norm_rows_check(const NormRows *n, bool centers, const char *name);
/* a row of an array; the caller frees it */
real *norm_row(Device *d, Array a, size_t row, size_t C);

#endif
