/* model.h: the staff's Transformer: parameters, forward, loss, backward */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdint.h>

#include "device/device.h"
#include "model/precision.h"
#include "model/shape.h"
#include "ops/ops.h"

typedef struct Saved {
	Array x, norm1, rho1, mu1;       /* (N, C), (N, C), (N), (N) */
	Array q, k, v;                   /* (B, T, H, D), q and k turned */
	Array qkv;                       /* (B, T, 3, H, D) of the fast path */
	Array P;                         /* (B, H, T, T) attention weights */
	Array L;                         /* (B, H, T) logsumexp, in P's place */
	/* (N, C): output of the heads; residual stream after attention */
	Array o, middle;
	Array norm2, rho2, mu2;          /* (N, C), (N), (N) */
	Array gate, up, h;               /* (N, F) */
	Array gate_up;                   /* (N, 2, F) of the fast path */
} Saved;

typedef struct Model {
	Shape shape;
	const Policy *policy;
	Device *device;
	const Ops *ops;
	/* the fast path; else one plain operation after another */
	bool fused;
	/* the fast path attends in tiles and has no attention weights */
	bool flash;
	/* of every `group` blocks only the first's input is saved, 0: everything of
	 * every block; backward, `leaf` blocks at a time are run again */
	int group, leaf;
	/* LayerNorm without shift in RMSNorm's place; plain path only */
	bool layernorm;
	size_t count;                    /* parameters */
	/* (count); gradients.at is NULL until the first backward pass */
	Array weights, gradients;
	/* (count) of the fast path: the weights as products read them */
	Array low;
	Array cosine, sine;              /* (context, D/2) */
	Saved *saved;                    /* one for each block */
	/* last block's output, its final norm (N, C), and the norm's factor and, of
	 * LayerNorm, mean (N) */
	Array x, norm, rho, mu;
	Array logits, losses, lse;       /* (N, V), (N), (N) */
	Array loss;                      /* (1), mean of losses */
	/* not 0: the loss, or a gradient under fp16, is infinite or NaN */
	int32_t *nonfinite;
	/* gradients are those of loss_scale times the loss; 1 but under fp16 */
	double loss_scale;
	int32_t *tokens, *targets;       /* (N), on the device */
	size_t B, T;                     /* of the last batch */
	bool has_targets, has_saved;
} Model;

/* weights are drawn from (seed, index of the tensor, index of the element) */
Model *model_new(Device *device, const Shape *shape, const Policy *policy,
	uint64_t seed);
void   model_free(Model **model);
#define FUSIONS "none|fused"
extern const char *const fusion_names[];
/* takes the fast path from now on, with attention in tiles where there is any */
void   model_fuse(Model *m);
#define ATTENTIONS "naive|flash"
extern const char *const attention_names[];
/* the fast path attends in tiles, if it can, or by the matrix of weights */
void   model_attend(Model *m, bool flash);
/* from now on K blocks at a time are run again in the backward pass; nested: from
 * the inputs of halves of halves, few of them saved at a time. K = 0: none */
void   model_recompute(Model *m, int K, bool nested);
/* after weights were written other than by adamw_step */
void   model_weights_changed(Model *m);

/* parameter tensor i of shape_parameter */
Array  model_weight(const Model *m, int i);
Array  model_gradient(const Model *m, int i);

/* brings a batch to the device. tokens, targets: host, (B, T), each below
 * vocab; targets may be NULL: no loss */
void   model_load(Model *m, const int32_t *tokens, const int32_t *targets,
	size_t B, size_t T);
/* queues the forward pass of the loaded batch. keep: save activations for
 * model_backward. Logits stay in m->logits until the next pass; when the fast
 * path keeps, their gradient is there instead */
void   model_run(Model *m, bool keep);
/* waits; the mean loss of the last pass. Ends the program if it is not finite */
double model_loss(Model *m);
/* all three; without targets returns 0 */
double model_forward(Model *m, const int32_t *tokens, const int32_t *targets,
	size_t B, size_t T, bool keep);
/* queues the gradients of the mean loss; overwrites m->gradients, or adds */
void   model_backward(Model *m, bool accumulate);
/* drops activations and logits that a forward pass left */
void   model_clear(Model *m);

#endif
