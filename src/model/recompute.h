/* recompute.h: the backward pass through blocks, some of which are run again */
#ifndef MODEL_RECOMPUTE_H
#define MODEL_RECOMPUTE_H

#include "model/state.h"

/* is only the input of this block saved? */
static inline bool saves_input(const Model *m, bool keep, int layer)
{
	return keep && m->checkpoint_every > 0 && layer % m->checkpoint_every == 0;
}

/* how a path runs blocks. forward: runs blocks first to first + n - 1 on the
 * input x, which is saved if save_input; all else is saved if keep. Returns
 * the stream after the last block if output. backward: propagates through
 * one block whose activations are all saved; gradient: the path's own */
typedef struct Blocks {
	Array (*forward)(Model *m, int first, int n, Array x, bool keep,
		bool save_input, bool output);
	void  (*backward)(Model *m, int layer, void *gradient);
} Blocks;

/* propagates through all blocks, and first runs those again of which only an
 * input was saved */
void blocks_backward(Model *m, const Blocks *blocks, void *gradient);

#endif
