/* owners.h: whole arrays dealt out to ranks */
#ifndef DIST_OWNERS_H
#define DIST_OWNERS_H

#include <stddef.h>

/* owners[i] becomes the rank that owns array i of counts[i] elements: the largest
 * array first, each to the rank with the smallest load, the lowest such rank.
 * loads: elements of each rank so far; the new ones are added */
void share_out(const size_t *counts, int n, size_t *loads, int ranks,
	int *owners);

#endif
