/* recompute.h: the backward pass through blocks, some of which are run again */
#ifndef MODEL_RECOMPUTE_H
#define MODEL_RECOMPUTE_H

#include "model/state.h"

/* is only the input of this block saved? */
static inline bool saves_input(const Model *m, bool keep, int layer)
{
	return keep && m->checkpoint_every > 0 && layer % m->checkpoint_every == 0;
}

/* how a path goes through blocks. forward: n blocks from first on, whose input is
 * x; it is kept if save_input, and all the rest if keep. output: the sum after
 * the last block is returned. backward: through one block, all of which is
 * saved */
typedef struct Blocks {
	Array (*forward)(Model *m, int first, int n, Array x, bool keep,
		bool save_input, bool output);
	void  (*backward)(Model *m, int layer, void *gradient);
} Blocks;

/* through all blocks; runs again those of which only an input is saved */
void blocks_backward(Model *m, const Blocks *blocks, void *gradient);

#endif
