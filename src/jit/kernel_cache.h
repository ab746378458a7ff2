/* kernel_cache.h: compiled kernels in a folder, for the next process */
#ifndef JIT_KERNEL_CACHE_H
#define JIT_KERNEL_CACHE_H

#include <stdint.h>

#include "jit/compiler.h"

/* the kernel's bytes, at freed by the caller; at is NULL if there is no such
 * entry or it is damaged */
Bytes cache_read(const char *folder, const char *identity, const char *source);
/* keeps a kernel, and makes the folder if necessary; returns whether it
 * could */
bool  cache_write(const char *folder, const char *identity, const char *source,
	Bytes bytes);
/* removes all kernels, and the folder if nothing else is in it */
void  cache_remove(const char *folder);

#endif
