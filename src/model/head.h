/* head.h: from the last norm to the losses of tokens, and back */
#ifndef MODEL_HEAD_H
#define MODEL_HEAD_H

#include "model/state.h"

/* are the logits of the loaded batch never there all at once? */
bool head_in_chunks(const Model *m);
/* norm: (N, C), dropped unless it is the model's and still needed. Leaves
 * logits, or their gradient (model_run), and losses; in chunks m->dnorm and
 * m->dhead, if keep */
void head_forward(Model *m, Array *norm, bool keep);
/* after a pass in chunks: the weights' gradient, times beta, plus m->dhead,
 * which is dropped; announces it */
void head_gradient(Model *m, double beta);

#endif
