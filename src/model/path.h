/* path.h: the two ways through a model */
#ifndef MODEL_PATH_H
#define MODEL_PATH_H

#include "model/state.h"

typedef struct Path {
	/* of the loaded batch, from the embedding to the losses of tokens */
	void (*forward)(Model *m, bool keep);
	/* gradients: beta times what they hold, 0 or 1, plus those of the loss */
	void (*backward)(Model *m, double beta);
} Path;

extern const Path eager_path, fused_path;

#endif
