/* norm_rows.h: rows on which norms are timed, and the formulas of the norms */
#ifndef CASES_NORM_ROWS_H
#define CASES_NORM_ROWS_H

#include "ops/ops.h"

#define ROWS_EPS 1e-5
typedef struct NormRowsCase {
	Device *device;
	const Ops *ops;
	size_t rows, C;
	Array x, y, dy, dx;              /* (rows, C), of one type */
	Array g, b, dg, db;              /* (C) */
	Array mean, rho;                 /* (rows) */
} NormRowsCase;
/* allocates all arrays and draws random numbers in them */
NormRowsCase norm_rows_new(Device *d, size_t rows, size_t C, Type type);
void     norm_rows_free(NormRowsCase *n);

/* eager passes over a NormRowsCase, each a Work */
void  norm_rows_rmsnorm(void *rows);
void  norm_rows_rmsnorm_back(void *rows);
void  norm_rows_layernorm(void *rows);
void  norm_rows_layernorm_back(void *rows);

/* ends the program unless three rows of y and of dx, which was zero before one
 * backward pass, are what the formulas say. centers: the norm subtracts the mean
 * and adds a shift */
void  norm_rows_check(const NormRowsCase *n, bool centers, const char *name);
/* a row of an array of rows of C, on the host; the caller frees it */
real *norm_row(Device *d, Array a, size_t row, size_t C);

#endif
