/* cache.h: compiled kernels in a folder, for the next process */
#ifndef JIT_CACHE_H
#define JIT_CACHE_H

#include <stdint.h>

#include "jit/compiler.h"

/* at NULL: it is not there, or is not whole */
Bytes cache_read(const char *folder, const char *identity, const char *source);
/* did it succeed? */
bool  cache_write(const char *folder, const char *identity, const char *source,
	Bytes bytes);
/* removes the kernels, and the folder if it holds nothing else */
void  cache_remove(const char *folder);

#endif
