/* model.h: the staff's Transformer: parameters, forward, loss, backward */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdint.h>

#include "device/device.h"
#include "model/precision.h"
#include "model/shape.h"
#include "ops/ops.h"

typedef struct Activations {
	Array x, norm1, rho1, mu1;       /* (N, C), (N, C), (N), (N) */
	Array q, k, v;                   /* (B, T, H, D), q and k rotated */
	Array qkv;                       /* (B, T, 3, H, D) of the fused path */
	Array P;                         /* (B, H, T, T) attention probabilities */
	Array L;                         /* (B, H, T) logsumexp, in P's place */
	/* (N, C): output of the heads; residual stream after attention */
	Array o, x_mid;
	Array norm2, rho2, mu2;          /* (N, C), (N), (N) */
	Array gate, up, h;               /* (N, F) */
	Array gate_up;                   /* (N, 2, F) of the fused path */
} Activations;

typedef struct Model {
	Shape shape;
	const Policy *policy;
	Device *device;
	const Ops *ops;
	/* the fused path; else one eager operation after another */
	bool fused;
	/* the fused path uses FlashAttention and has no P */
	bool flash;
	/* of every `checkpoint_every` blocks only the first's input is saved, 0:
	 * everything of every block; backward, `recompute_blocks` blocks at a time
	 * are run again */
	int checkpoint_every, recompute_blocks;
	/* LayerNorm without shift in RMSNorm's place; eager path only */
	bool layernorm;
	size_t count;                    /* parameters */
	/* (count); gradients.at is NULL until the first backward pass */
	Array weights, gradients;
	/* (count) of the fused path: the weights as matmuls read them */
	Array compute_weights;
	Array cosine, sine;              /* (context, D/2) */
	Activations *activations;        /* one for each block */
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
	bool has_targets, has_activations;
} Model;

/* weights are drawn from (seed, index of the tensor, index of the element) */
Model *model_new(Device *device, const Shape *shape, const Policy *policy,
	uint64_t seed);
void   model_free(Model **model);
#define FUSIONS "eager|fused"
extern const char *const fusion_names[];
/* takes the fused path from now on, with FlashAttention where there is any */
void   model_fuse(Model *m);
#define ATTENTIONS "naive|flash"
/* the fused path uses FlashAttention, if it can, or naive attention */
void   model_set_attention(Model *m, bool flash);
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
 * model_backward. Logits stay in m->logits until the next pass; when the fused
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
