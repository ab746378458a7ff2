#include "model/recompute.h"

#include "model/parameters.h"

// propagate through all blocks
static void propagate_one(Model *m, const Blocks *b, int layer, void *gradient)
{
	enter_unit(m, 1 + layer, true);
	RANGE(m->device, "layer")
		b->backward(m, layer, gradient);
	leave_unit(m, 1 + layer, true);
}

static void propagate(Model *m, const Blocks *b, int first, int n,
	void *gradient)
{
	Activations *s = &m->activations[first];
	if (n <= m->recompute_blocks) {
		b->forward(m, first, n, s->x, true, false, false);
		for (int layer = first + n - 1; layer >= first; layer--)
			propagate_one(m, b, layer, gradient);
	} else {
		int half = (n + 1) / 2;
		m->activations[first + half].x = b->forward(m, first, half, s->x, false,
			true, true);
		propagate(m, b, first + half, n - half, gradient);
		propagate(m, b, first, half, gradient);
	}
}

void blocks_backward(Model *m, const Blocks *b, void *gradient)
{
	int layers = (int)m->shape.layers, group = m->checkpoint_every;
	if (group == 0) {
		for (int layer = layers - 1; layer >= 0; layer--)
			propagate_one(m, b, layer, gradient);
		return;
	}
	for (int first = (layers - 1) / group * group; first >= 0; first -= group)
		propagate(m, b, first, first + group < layers ? group
			: layers - first, gradient);
}
