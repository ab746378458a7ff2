/* checkpoint.h: a model's shape and weights in a safetensors file, under the
 * staff's names */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "base/safetensors.h"
#include "model/model.h"

/* the shape in the file's metadata. Exits 2 if an entry is missing or
 * impossible, or if the file lacks a parameter of such a model or has it in
 * another size */
Shape checkpoint_shape(const TensorFile *f, const char *path);
/* the named tensor; exits 2 unless it is fp32 and has the shape of p */
const TensorView *checkpoint_expect(const TensorFile *f, const char *name,
	const Parameter *p);
/* copies the file's weights to the model; exits 2 if a tensor is missing or has
 * another size */
void  checkpoint_load(Model *m, const TensorFile *f);
/* writes shape and weights, in fp32; ends the program if that fails */
void  checkpoint_save(Model *m, const char *path);

// declare metadata of a file
enum { MOST_METADATA = 24 };
typedef struct Metadata {
	int n;                                       /* entries; starts at 0 */
	char values[MOST_METADATA][32];
	/* the argument of tensorfile_write: key, value, ..., NULL. The pointers
	 * lead to values, so the struct stays where it is */
	const char *pairs[2 * MOST_METADATA + 1];
} Metadata;
void  metadata_text(Metadata *to, const char *key, const char *value);
void  metadata_number(Metadata *to, const char *key, double value);
/* adds the entries that checkpoint_shape reads */
void  metadata_shape(Metadata *to, const Shape *s);
/* an integer in the metadata; exits 2 if it is missing or not from least to
 * most */
long  metadata_integer(const TensorFile *f, const char *path, const char *key,
	long least, long most);

#endif
