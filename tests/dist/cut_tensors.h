/* cut_tensors.h: named tensors, cut into pieces at random */
#ifndef TESTS_CUT_TENSORS_H
#define TESTS_CUT_TENSORS_H

#include "dist/pieces.h"
#include "tests/ops/compare.h"
#include "tests/dist/ranks.h"

// name tensors, and draw their elements
typedef struct Tensor { const char *name; size_t rows, columns; } Tensor;
static const Tensor tensors[] = {
	{ "one", 0, 1 }, { "layers.0.weight", 7, 13 }, { "three", 0, 3 },
	{ "a.single", 1, 1 }, { "optimizer.m.layers.0.weight", 40, 50 },
	{ "z", 0, 64 }, { "layers.10.weight", 3, 700 },
};
enum { NTENSORS = sizeof tensors / sizeof *tensors, MOST_PIECES = 64 };

static inline size_t elements_of(int t)
{
	return (tensors[t].rows ? tensors[t].rows : 1) * tensors[t].columns;
}

static inline float value(int version, int t, size_t i)
{
	return (float)random_truncated(version, t, i, 3);
}

// cut tensors into pieces at random
static inline int by_size(const void *a, const void *b)
{
	const size_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* of tensor t, those that the deal gives to this rank; in no order */
static inline int deal_tensor(int deal, int t, int rank, int ranks, Piece *p)
{
	size_t count = elements_of(t), cuts[2 * MOST + 1] = { 0 };
	int n = 0, parts = 2 * ranks;
	for (int k = 1; k <= parts; k++)
		cuts[k] = k == parts ? count
			: random_bits(deal, t, k) % (count + 1);
	qsort(cuts, parts + 1, sizeof *cuts, by_size);
	for (int k = parts - 1; k >= 0; k--)
		if (random_bits(deal, t, 100 + k) % ranks == (unsigned)rank)
			p[n++] = (Piece){ tensors[t].name, tensors[t].rows,
				tensors[t].columns, cuts[k], cuts[k + 1] - cuts[k],
				{ NULL, FP32 } };
	return n;
}

static inline int tensor_of(const Piece *p)
{
	int t = 0;
	while (strcmp(tensors[t].name, p->name) != 0)
		t++;
	return t;
}

/* version < 0: of NaN */
static inline int deal_pieces(Device *d, int deal, int rank, int ranks,
	int version, Piece *p)
{
	int n = 0;
	for (int t = 0; t < NTENSORS; t++)
		n += deal_tensor(deal, t, rank, ranks, p + n);
	for (int k = 0; k < n; k++) {
		p[k].at = array_new(d, p[k].n + 1, TYPE_REAL, MEM_PARAMETER, "piece");
		for (size_t i = 0; i < p[k].n; i++)
			reals(p[k].at)[i] = version < 0 ? NAN
				: value(version, tensor_of(&p[k]), p[k].begin + i);
	}
	return n;
}

static inline void free_pieces(Device *d, Piece *p, int n)
{
	for (int k = 0; k < n; k++)
		device_free(d, p[k].at.at);
}

#endif
