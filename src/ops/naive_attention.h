/* naive_attention.h: attention by two matmuls with a softmax of all scores
 * between them, an attention kernel that saves P. q, k, v and d_o have the
 * type that matmuls read; S is stored in o's, P in its own, dP in dq's */
#ifndef OPS_NAIVE_ATTENTION_H
#define OPS_NAIVE_ATTENTION_H

#include "ops/types.h"

/* causal, with as many queries as keys; gradients can be rotated back where dq
 * and dk are (B, T, H, D) without gaps */
bool   naive_attention_supports(Device *d, const Attention *a,
	const AttentionGradient *g);
void   naive_attention_forward(Device *d, Attention a);
void   naive_attention_backward(Device *d, Attention a, AttentionGradient g);
size_t naive_attention_scratch(Device *d, const Attention *a,
	const AttentionGradient *g);

/* the parts. fused: the softmax is one kernel, for which P has o's type. Writes
 * a->P; reads it, and writes o; reads it, and writes gradients, which are not
 * rotated */
void   naive_probabilities(Device *d, const Attention *a, bool fused);
void   naive_values(Device *d, const Attention *a);
void   naive_gradients(Device *d, const Attention *a,
	const AttentionGradient *g, bool fused);

#endif
