/* attention.h: attention of the fused path, on packed projections */
#ifndef MODEL_ATTENTION_H
#define MODEL_ATTENTION_H

#include "model/state.h"

/* rotates queries and keys of qkv (B, T, 3, H, D) in place; direction: 1, or
 * -1 to rotate back */
void  fused_attention_rotate(Model *m, Array qkv, int direction);
/* reads s->qkv, whose queries and keys are rotated; sets s->o and s->L or
 * s->P */
void  fused_attention_forward(Model *m, Activations *s);
/* reads the same and frees s->L or s->P. Returns the gradient of s->qkv as
 * it was before its rotation. dO: (N, H D) */
Array fused_attention_backward(Model *m, Activations *s, Array dO);

#endif
