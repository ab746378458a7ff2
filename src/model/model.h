/* model.h: the staff's Transformer: parameters, forward, loss, backward */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdint.h>

#include "device/device.h"
#include "model/precision.h"
#include "model/shape.h"
#include "ops/ops.h"

typedef struct Saved {
	Array x, norm1, rho1;            /* (N, C), (N, C), (N) */
	Array q, k, v;                   /* (B, T, H, D), q and k turned */
	Array P;                         /* (B, H, T, T) attention weights */
	/* (N, C): output of the heads; residual stream after attention */
	Array o, middle;
	Array norm2, rho2;               /* (N, C), (N) */
	Array gate, up, h;               /* (N, F) */
} Saved;

typedef struct Model {
	Shape shape;
	const Policy *policy;
	Device *device;
	const Ops *ops;
	size_t count;                    /* parameters */
	/* (count); gradients.at is NULL until the first backward pass */
	Array weights, gradients;
	Array cosine, sine;              /* (context, D/2) */
	Saved *saved;                    /* one for each block */
	/* last block's output, its final norm (N, C), and the norm's factor (N) */
	Array x, norm, rho;
	Array logits, losses, lse;       /* (N, V), (N), (N) */
	int32_t *tokens, *targets;       /* (N), on the device */
	size_t B, T;                     /* of the last forward pass */
	bool has_saved;
} Model;

/* weights are drawn from (seed, index of the tensor, index of the element) */
Model *model_new(Device *device, const Shape *shape, const Policy *policy,
	uint64_t seed);
void   model_free(Model **model);

/* parameter tensor i of shape_parameter */
Array  model_weight(const Model *m, int i);
Array  model_gradient(const Model *m, int i);

/* tokens, targets: host, (B, T), each below vocab; targets may be NULL: no
 * loss, returns 0. Returns the mean loss.
 * keep: save activations for model_backward. Logits stay in m->logits until the
 * next pass. */
double model_forward(Model *m, const int32_t *tokens, const int32_t *targets,
	size_t B, size_t T, bool keep);
/* gradients of the mean loss; overwrites m->gradients, or adds to them */
void   model_backward(Model *m, bool accumulate);
/* drops activations and logits that a forward pass left */
void   model_clear(Model *m);

#endif
