/* rmsnorm_reference.h: a norm of rows on a device, against its formulas */
#ifndef TESTS_RMSNORM_REFERENCE_H
#define TESTS_RMSNORM_REFERENCE_H

#include "tests/ops/compare.h"

#define NORM_EPSILON 1e-5

typedef struct NormCase {
	size_t rows, C;
	size_t apart;                   /* elements between rows of x and dy */
	size_t skew;                    /* elements before each array */
	Type x, y;                      /* y: also of dy */
	bool fresh, again;              /* dx is overwritten; rho is not given */
	bool all;                       /* a branch is added; copy and y are wanted */
	NormVersion forward, backward;
} NormCase;

enum { X, Y, DY, DX, G, DG, RHO, BRANCH, SUM, COPY, Y_AGAIN, NORM_ARRAYS };

typedef struct Placed {
	Array host, whole, at;          /* on the device: with margins, without */
	size_t rows, row, n;
} Placed;

static Device *norm_device;
static Placed placed[NORM_ARRAYS];

// place the arrays of a norm
enum { NORM_MARGIN = 64 };

/* rows of C elements, `row` from each to the next; NaN where no input is */
static inline void place(int a, size_t rows, size_t C, size_t row, Type type,
	size_t skew, bool input, double mean)
{
	size_t n = NORM_MARGIN + skew + rows * row + NORM_MARGIN;
	Placed p = { poisoned(n), array_new(norm_device, n, type, MEM_TEMPORARY,
		"argument"), .rows = rows, .row = row, .n = n };
	p.host.type = type;
	p.host.at = reals(p.host) + NORM_MARGIN + skew;
	p.at = array_part(norm_device, p.whole, NORM_MARGIN + skew);
	for (size_t i = 0; input && i < rows; i++)
		for (size_t j = 0; j < C; j++)
			reals(p.host)[i * row + j] = round_to(type, (float)(mean
				+ random_truncated(7, a, i * C + j, 3)));
	array_write(norm_device, p.whole, reals(p.host) - NORM_MARGIN - skew, n);
	placed[a] = p;
}

// place the arrays of a norm, and run it
static inline void place_norm(const NormCase *c)
{
	size_t row = c->C + c->apart;
	place(X, c->rows, c->C, row, c->x, c->skew, true, 0.3);
	place(Y, c->rows, c->C, row, c->y, c->skew, false, 0);
	place(DY, c->rows, c->C, row, c->y, c->skew, true, 0);
	place(DX, c->rows, c->C, c->C, c->x, c->skew, !c->fresh, 0);
	place(G, 1, c->C, c->C, TYPE_REAL, c->skew, true, 1);
	place(DG, 1, c->C, c->C, TYPE_REAL, c->skew, !c->fresh, 0);
	place(RHO, c->rows, 1, 1, TYPE_REAL, 0, false, 0);
	if (!c->all)
		return;
	place(BRANCH, c->rows, c->C, c->C, c->y, c->skew, true, 0.1);
	place(SUM, c->rows, c->C, c->C, c->x, c->skew, false, 0);
	place(COPY, c->rows, c->C, c->C, c->y, c->skew, false, 0);
	place(Y_AGAIN, c->rows, c->C, c->C, c->y, c->skew, false, 0);
}

static inline void run_norm(const NormCase *c)
{
	const Ops *o = ops_for(norm_device);
	size_t row = c->C + c->apart;
	o->fused_rmsnorm_forward(norm_device, (NormForward){ .y = placed[Y].at,
		.rho = placed[RHO].at, .sum = placed[SUM].at, .x = placed[X].at,
		.branch = placed[BRANCH].at, .g = placed[G].at, .x_row = row,
		.y_row = row, .eps = NORM_EPSILON, .version = c->forward }, c->rows,
		c->C);
	o->fused_rmsnorm_backward(norm_device, (NormBackward){ .dsum = placed[DX].at,
		.fresh = c->fresh, .copy = placed[COPY].at, .dg = placed[DG].at,
		.beta = !c->fresh, .y = placed[Y_AGAIN].at, .dy = placed[DY].at,
		.sum = placed[c->all ? SUM : X].at, .g = placed[G].at,
		.rho = c->again ? (Array){ NULL, TYPE_REAL } : placed[RHO].at,
		.eps = NORM_EPSILON, .x_row = c->all ? c->C : row, .dy_row = row,
		.version = c->backward }, c->rows, c->C);
}

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

// compare a norm with its formulas
/* the rows, without what lies between, which must be NaN still */
static inline Array taken(int a, size_t C)
{
	const Placed *p = &placed[a];
	Array image = poisoned(p->n), rows = poisoned(p->rows * C);
	array_read(norm_device, image.at, p->whole, p->n);
	size_t first = p->n - NORM_MARGIN - p->rows * p->row;
	for (size_t i = 0; i < p->n; i++) {
		size_t in = i - first, row = in / p->row, column = in % p->row;
		if (i < first || row >= p->rows || column >= C) {
			if (!isnan(reals(image)[i]))
				fail_msg("array %d: element %zu, outside, was written", a, i);
		} else {
			reals(rows)[row * C + column] = reals(image)[i];
		}
	}
	return rows;
}

/* frees the device's arrays, also after a failure */
static inline int release_norm(void **state)
{
	for (int a = 0; a < NORM_ARRAYS; a++) {
		if (placed[a].whole.at)
			device_free(norm_device, placed[a].whole.at);
		placed[a] = (Placed){ 0 };
	}
	return release(state);
}

// run a norm and compare it
static inline void follow_the_formulas(const NormCase *c)
{
	static const char *const names[] = { [Y] = "y", [DX] = "dx", [DG] = "dg",
		[RHO] = "rho", [SUM] = "sum", [COPY] = "copy", [Y_AGAIN] = "y again" };
	place_norm(c);
	run_norm(c);
	NormWanted w = want_norm(c);
	for (int a = 0; a < NORM_ARRAYS; a++) {
		if (names[a] == NULL || w.of[a] == NULL)
			continue;
		char what[160];
		snprintf(what, sizeof what, "%s of %zu rows of %zu + %zu, %s and %s, "
			"skewed by %zu, versions %d and %d%s%s%s", names[a], c->rows,
			c->C, c->apart, type_names[c->x], type_names[c->y], c->skew,
			c->forward, c->backward, c->fresh ? ", fresh" : "",
			c->again ? ", again" : "", c->all ? ", all" : "");
		size_t width = a == RHO ? 1 : c->C;
		expect_close(what, taken(a, width), w.of[a],
			(a == DG ? 1 : c->rows) * width);
	}
	release_norm(NULL);
}

#endif
