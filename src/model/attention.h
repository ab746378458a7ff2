/* attention.h: attention of the fused path, on packed projections */
#ifndef MODEL_ATTENTION_H
#define MODEL_ATTENTION_H

#include "model/state.h"

/* will P of all blocks fit, with what else a step needs? */
bool  scores_fit(const Model *m);
/* queries and keys of qkv (B, T, 3, H, D), in place; direction as for rope */
void  fused_attention_rotate(Model *m, Array qkv, int direction);
/* reads s->qkv, rotated; leaves s->o, and s->L or s->P */
void  fused_attention_forward(Model *m, Activations *s);
/* reads these, drops s->L or s->P; the gradient of s->qkv before its rotation */
Array fused_attention_backward(Model *m, Activations *s, Array dO);

#endif
