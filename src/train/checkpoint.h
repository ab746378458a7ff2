/* checkpoint.h: a model's shape and weights in a safetensors file, under the
 * staff's names */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "base/safetensors.h"
#include "model/model.h"

/* the shape in the file's metadata; a missing or impossible entry exits 2, and
 * so does a parameter that the file lacks or has in another size */
Shape checkpoint_shape(const TensorFile *f, const char *path);
/* a tensor that is missing or of another size exits 2 */
void  checkpoint_load(Model *m, const TensorFile *f);
void  checkpoint_save(Model *m, const char *path);

#endif
