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
	/* the format's name: our programs read "F32", "F64", "I32" and "I64";
	 * "BF16", "F16" and others are listed and not converted */
	char dtype[12];
	int ndim;                /* any number; shape has the first eight */
	size_t shape[8], count;  /* count: product of all dimensions */
	const void *data;        /* aligned to its dtype */
} TensorView;

// declare how tensors are read
/* Maps the file and checks all that the format demands of it. A damaged file is
 * named with the offset of the damage: exit 2. */
TensorFile       *tensorfile_open(const char *path);
/* frees *f with all its views, and sets it to NULL */
void              tensorfile_close(TensorFile **f);
/* the value of a key of the metadata; NULL if there is none */
const char       *tensorfile_meta(const TensorFile *f, const char *key);
/* the tensor of that name; NULL if there is none */
const TensorView *tensorfile_find(const TensorFile *f, const char *name);
/* how many tensors; tensorfile_at: number i of them, in the header's order */
int               tensorfile_count(const TensorFile *f);
const TensorView *tensorfile_at(const TensorFile *f, int i);
/* the tensor of that name, whose dtype and number of elements must be these;
 * otherwise exit 2 */
const TensorView *tensorfile_expect(const TensorFile *f, const char *name,
	const char *dtype, size_t count);

// declare how tensors are written
/* does the file begin like one of this format? for file_try */
bool tensorfile_recognised(FILE *f);
/* Writes the eight bytes and the header of views (name, dtype, shape) and of
 * metadata {key, value, ..., NULL}; meta may be NULL. All strings are UTF-8.
 * Returns how many bytes these are. The caller writes the data of the views
 * behind them, in their order. Errors stay with the stream. */
size_t tensorfile_put_header(FILE *f, const TensorView *views, int n,
	const char *const *meta);
/* writes header and data; replaces path atomically */
void tensorfile_write(const char *path, const TensorView *views, int n,
	const char *const *meta);

#endif
