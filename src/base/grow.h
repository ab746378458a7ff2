/* grow.h: arrays that grow, and a hash of bytes */
#ifndef BASE_GROW_H
#define BASE_GROW_H

#include <stddef.h>
#include <stdint.h>

/* Makes room for one more element: returns the n elements of nbytes bytes each,
 * possibly at another address, in an array that holds at least n + 1. items is
 * NULL or whatever when n is 0. Dies when there is no memory. */
void    *grow(void *items, size_t n, size_t nbytes);
/* Doubles a ring in which element i lies at index i % *capacity. Copies
 * elements first .. end - 1 to their new indices, frees items, and updates
 * *capacity. An empty ring has capacity 0 and items NULL. Dies when there is no
 * memory. */
void    *grow_ring(void *items, size_t *capacity, size_t first, size_t end,
	size_t nbytes);

/* FNV-1a: the hash of the bytes that led to `hash`, followed by n more; the
 * first call starts from HASH_START */
#define HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_bytes(uint64_t hash, const void *at, size_t n);

#endif
