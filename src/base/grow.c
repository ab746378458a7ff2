#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void *grow(void *items, size_t n, size_t nbytes)
{
	if ((n & (n - 1)) != 0)
		return items;
	return need(realloc(items, (n ? 2 * n : 1) * nbytes));
}

void *grow_ring(void *items, size_t *capacity, size_t first, size_t end,
	size_t nbytes)
{
	size_t more = *capacity ? 2 * *capacity : 64;
	char *to = need(malloc(more * nbytes));
	for (size_t i = first; i < end; i++)
		memcpy(to + i % more * nbytes, (char *)items + i % *capacity * nbytes,
			nbytes);
	free(items);
	*capacity = more;
	return to;
}

uint64_t hash_bytes(uint64_t hash, const void *at, size_t n)
{
	const unsigned char *p = at;
	while (n-- > 0)
		hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
	return hash;
}
