/* pieces.h: one safetensors file that all ranks write, each its pieces of
 * tensors. The ranks share a file system */
#ifndef DIST_PIECES_H
#define DIST_PIECES_H

#include "base/safetensors.h"
#include "dist/comm.h"

/* a range of elements of a tensor, and the array that holds it */
typedef struct Piece {
	const char *name;                /* of the tensor; less than 96 bytes */
	size_t rows, columns;            /* the tensor's shape; rows 0: a vector */
	size_t begin, n;                 /* first element and number, row by row */
	Array at;                        /* those n elements */
} Piece;

/* All ranks call it. Tensors are fp32 in the file, in the order of their names;
 * meta: as in tensorfile_write, rank 0's count. The file is replaced when all of
 * it is on the disk. Where pieces overlap or leave a gap, or a rank cannot write,
 * all ranks end with one reason, and the file stays as it was: exit 1, and 2 if
 * the folder cannot be written or another program writes the file. Where the
 * folder cannot be synchronised after the renaming, the new file stays: exit 1 */
void pieces_save(const char *path, Comm *c, Device *d, const Piece *pieces, int n,
	const char *const *meta);
/* reads this rank's pieces, however many ranks wrote the file. A tensor that is
 * missing or of another shape exits 2 before any is read */
void pieces_load(const TensorFile *f, Device *d, const Piece *pieces, int n);

#endif
