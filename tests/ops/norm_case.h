/* norm_case.h: a norm of rows, its arrays on a device, and a run of it */
#ifndef TESTS_NORM_CASE_H
#define TESTS_NORM_CASE_H

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

#endif
