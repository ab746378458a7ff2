/* path.h: the two ways through a model */
#ifndef MODEL_PATH_H
#define MODEL_PATH_H

#include "model/state.h"

typedef struct Path {
	/* runs the loaded batch from the embedding to the losses of its tokens */
	void (*forward)(Model *m, bool keep);
	/* gradients become beta (0 or 1) times what they hold plus those of the
	 * loss */
	void (*backward)(Model *m, double beta);
} Path;

extern const Path eager_path, fused_path;

#endif
