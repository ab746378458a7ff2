/* safetensors.h: named tensors in a file: 8 bytes of header length, a JSON
 * header, the data
 * (format: huggingface/safetensors README) */
#ifndef BASE_SAFETENSORS_H
#define BASE_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct TensorFile TensorFile;

typedef struct TensorView {
	const char *name;
	/* "F32" "F64" "I32" "I64" ("BF16", "F16" ... are listed, not read) */
	char dtype[8];
	int ndim;
	size_t shape[8], count;  /* count: product of the shape */
	const void *data;        /* aligned to its dtype */
} TensorView;

/* maps the file and checks all that the format demands of it; a damaged one is
 * named with the offset of the damage: exit 2 */
TensorFile       *tensorfile_open(const char *path);
void              tensorfile_close(TensorFile **f);
/* NULL if absent */
const char       *tensorfile_meta(const TensorFile *f, const char *key);
/* NULL if absent */
const TensorView *tensorfile_find(const TensorFile *f, const char *name);
int               tensorfile_count(const TensorFile *f);
const TensorView *tensorfile_at(const TensorFile *f, int i);
/* the named tensor, whose dtype and element count must be these: otherwise exit
 * 2 */
const TensorView *tensorfile_expect(const TensorFile *f, const char *name,
	const char *dtype, size_t count);

/* for file_try */
bool tensorfile_recognised(FILE *f);
/* writes the eight bytes and the header of views (name, dtype, shape) and of
 * metadata pairs {key, value, ..., NULL}; returns how many bytes these are. The
 * data of the views follow in their order. Errors stay with the stream */
size_t tensorfile_put_header(FILE *f, const TensorView *views, int n,
	const char *const *meta);
/* header and data; replaces path atomically */
void tensorfile_write(const char *path, const TensorView *views, int n,
	const char *const *meta);

#endif
