/* norm_formulas.h: what a norm must leave, in double precision */
#ifndef TESTS_NORM_FORMULAS_H
#define TESTS_NORM_FORMULAS_H

#include "tests/ops/norm_case.h"

// compute a norm in double precision
typedef struct NormWanted { Expected *of[NORM_ARRAYS]; } NormWanted;

static inline double row_of(int a, size_t i, size_t j)
{
	return reals(placed[a].host)[i * placed[a].row + j];
}

static inline Expected norm_limit(Type type, double value, double limit)
{
	if (type != TYPE_REAL)
		limit += type_spacing(type, value);
	return (Expected){ value, limit };
}

// compute one row and its limits
/* the element of the sum that is normed */
static inline double normed(const NormCase *c, size_t i, size_t j)
{
	double x = row_of(X, i, j);
	return c->all ? round_to(c->x, (float)(x + row_of(BRANCH, i, j))) : x;
}

static inline void want_element(const NormCase *c, NormWanted *w, size_t i,
	size_t j, double rho, double dot)
{
	double C = (double)c->C, deep = (8 + sqrt(C) / 4) * EPS;
	double xhat = normed(c, i, j) * rho, g = row_of(G, 0, j);
	double before = c->fresh ? 0 : row_of(DX, i, j), y = g * xhat;
	double dx = before + rho * (g * row_of(DY, i, j) - xhat * dot * rho / C);
	size_t at = i * c->C + j;
	w->of[Y][at] = norm_limit(c->y, y, deep * fabs(y));
	w->of[DX][at] = norm_limit(c->x, dx, 8 * deep * (1 + rho));
	if (!c->all)
		return;
	w->of[SUM][at] = (Expected){ normed(c, i, j), 0 };
	w->of[COPY][at] = norm_limit(c->y, dx, 8 * deep * (1 + rho));
	w->of[Y_AGAIN][at] = w->of[Y][at];
}

static inline void want_row(const NormCase *c, NormWanted *w, double *dg,
	size_t i)
{
	double squares = 0, dot = 0, C = (double)c->C, deep = 8 + sqrt(C) / 4;
	for (size_t j = 0; j < c->C; j++) {
		double x = normed(c, i, j);
		squares += x * x;
		dot += row_of(G, 0, j) * row_of(DY, i, j) * x;
	}
	double rho = 1 / sqrt(squares / C + NORM_EPSILON);
	w->of[RHO][i] = norm_limit(TYPE_REAL, rho, deep * EPS * rho);
	for (size_t j = 0; j < c->C; j++) {
		want_element(c, w, i, j, rho, dot);
		dg[j] += row_of(DY, i, j) * normed(c, i, j) * rho;
	}
}

// compute all rows of a norm
static inline NormWanted want_norm(const NormCase *c)
{
	NormWanted w = { { [Y] = expected(c->rows * c->C),
		[DX] = expected(c->rows * c->C), [DG] = expected(c->C),
		[RHO] = expected(c->rows) } };
	for (int a = SUM; c->all && a <= Y_AGAIN; a++)
		w.of[a] = expected(c->rows * c->C);
	double *dg = guarded(c->C * sizeof *dg);
	for (size_t j = 0; j < c->C; j++)
		dg[j] = c->fresh ? 0 : row_of(DG, 0, j);
	for (size_t i = 0; i < c->rows; i++)
		want_row(c, &w, dg, i);
	for (size_t j = 0; j < c->C; j++)
		w.of[DG][j] = norm_limit(TYPE_REAL, dg[j], (8 + sqrt(c->C) / 4) * EPS
			* (1 + 8 * c->rows));
	return w;
}

#endif
