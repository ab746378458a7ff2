#include "dist/owners.h"

#include <stdlib.h>

#include "base/error.h"

typedef struct Share {
	size_t count;
	int index;
} Share;

static int larger_first(const void *a, const void *b)
{
	const Share *x = a, *y = b;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->index - y->index;
}

void share_out(const size_t *counts, int n, size_t *loads, int ranks,
	int *owners)
{
	Share *shares = need(malloc((n + 1) * sizeof *shares));
	for (int i = 0; i < n; i++)
		shares[i] = (Share){ counts[i], i };
	qsort(shares, n, sizeof *shares, larger_first);
	// give each array to the rank with the smallest load
	for (int i = 0; i < n; i++) {
		int least = 0;
		for (int r = 1; r < ranks; r++)
			least = loads[r] < loads[least] ? r : least;
		owners[shares[i].index] = least;
		loads[least] += shares[i].count;
	}
	free(shares);
}
