/* grow.h: arrays that grow, and a hash of bytes */
#ifndef BASE_GROW_H
#define BASE_GROW_H

#include <stddef.h>
#include <stdint.h>

/* the n elements, of so many bytes each, where there is room for one more; at
 * n = 0 items may be NULL. Dies when there is no memory */
void    *grow(void *items, size_t n, size_t nbytes);
/* the elements from first to before end, each at its number modulo the capacity,
 * where there is room for twice as many; at capacity 0 items is NULL */
void    *grow_ring(void *items, size_t *capacity, size_t first, size_t end,
	size_t nbytes);

/* FNV-1a, of what was hashed and n bytes more */
#define HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_bytes(uint64_t hash, const void *at, size_t n);

#endif
