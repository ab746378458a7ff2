/* row_threads.h: how the elements of a row are shared out to threads */
#ifndef OPS_ROW_THREADS_H
#define OPS_ROW_THREADS_H

#include <stddef.h>

enum { PACK = 4, LANES = 16, MOST_THREADS = 1024 };

/* threads for a row of C: a power of two, whole warps */
static inline unsigned row_threads(size_t C)
{
	unsigned T = 32;
	while (T < MOST_THREADS && T * 2 * (size_t)PACK < C)
		T *= 2;
	return T;
}

/* slabs into which rows are cut for sums of columns; slab s begins at row s
 * rows / slabs */
static inline size_t row_slabs(size_t rows, size_t C)
{
	const size_t most = ((size_t)1 << 18) / row_threads(C);
	const size_t least = (rows + 7) / 8;
	return least < most ? least : most;
}

#endif
