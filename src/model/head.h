/* head.h: from the last norm to the losses of tokens, and back */
#ifndef MODEL_HEAD_H
#define MODEL_HEAD_H

#include "model/state.h"

/* does the loaded batch go through the head in chunks of tokens? */
bool head_in_chunks(const Model *m);
/* computes losses from the last norm's output, (N, C). norm is freed unless it
 * is m->norm and still needed. Leaves losses and either logits, or with keep in
 * the fused path their gradient; a head in chunks with keep leaves m->dnorm and
 * m->dhead instead */
void head_forward(Model *m, Array *norm, bool keep);
/* after a pass in chunks: adds m->dhead to beta times the gradient of lm_head,
 * frees m->dhead and announces the gradient */
void head_gradient(Model *m, double beta);

#endif
