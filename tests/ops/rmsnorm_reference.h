/* rmsnorm_reference.h: a norm of rows on a device, against its formulas */
#ifndef TESTS_RMSNORM_REFERENCE_H
#define TESTS_RMSNORM_REFERENCE_H

#include "tests/ops/norm_formulas.h"

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
