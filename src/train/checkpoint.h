/* checkpoint.h: a model's shape and weights in a safetensors file, under the
 * staff's names */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "base/safetensors.h"
#include "model/model.h"

/* the shape in the file's metadata; a missing or impossible entry exits 2, and
 * so does a parameter that the file lacks or has in another size */
Shape checkpoint_shape(const TensorFile *f, const char *path);
/* the named tensor, which must be fp32 and have the shape of p; else exit 2 */
const TensorView *checkpoint_expect(const TensorFile *f, const char *name,
	const Parameter *p);
/* a tensor that is missing or of another size exits 2 */
void  checkpoint_load(Model *m, const TensorFile *f);
void  checkpoint_save(Model *m, const char *path);

enum { MOST_METADATA = 24 };
typedef struct Metadata {
	int n;                                       /* starts at 0 */
	char values[MOST_METADATA][32];
	/* for tensorfile_write: key, value, ..., NULL. They point to values, so the
	 * struct stays where it is */
	const char *pairs[2 * MOST_METADATA + 1];
} Metadata;
void  metadata_text(Metadata *to, const char *key, const char *value);
void  metadata_number(Metadata *to, const char *key, double value);
/* what checkpoint_shape reads */
void  metadata_shape(Metadata *to, const Shape *s);
/* an integer in the metadata; a missing one or one that is not from least to most
 * exits 2 */
long  metadata_integer(const TensorFile *f, const char *path, const char *key,
	long least, long most);

#endif
