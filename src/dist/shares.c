#include "dist/shares.h"

#include <stdlib.h>

#include "base/error.h"

typedef struct Piece {
	size_t count;
	int index;
} Piece;

static int larger_first(const void *a, const void *b)
{
	const Piece *x = a, *y = b;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->index - y->index;
}

void share_out(const size_t *counts, int n, size_t *loads, int ranks,
	int *owners)
{
	Piece *pieces = need(malloc((n + 1) * sizeof *pieces));
	for (int i = 0; i < n; i++)
		pieces[i] = (Piece){ counts[i], i };
	qsort(pieces, n, sizeof *pieces, larger_first);
	for (int i = 0; i < n; i++) {
		int least = 0;
		for (int r = 1; r < ranks; r++)
			least = loads[r] < loads[least] ? r : least;
		owners[pieces[i].index] = least;
		loads[least] += pieces[i].count;
	}
	free(pieces);
}
