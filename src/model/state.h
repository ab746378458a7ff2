/* state.h: a model as its paths see it: parameters, what a pass leaves */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include "model/activations.h"
#include "model/hooks.h"
#include "model/memory_plan.h"
#include "model/precision.h"
#include "model/rank_group.h"
#include "model/shape.h"
#include "ops/ops.h"

// declare a parameter as a view
typedef struct Param {
	Parameter about;
	Array weight;        /* the master weight */
	/* the array that matmuls read: the weight or a copy of another type. at
	 * is NULL in the eager path, unless model_keep_compute was called */
	Array compute;
	/* a copy as matmuls read it, from its first matmul in a pass on until
	 * nothing in the pass reads it; at NULL: there is none */
	Array cast;
	Array gradient;      /* at is NULL until the first backward pass */
} Param;

// declare a model
typedef struct Model {
	Shape shape;
	/* the ranks that share the model; shape is that of this rank's part.
	 * NULL: the whole model is on one device. The fused path only */
	const RankGroup *group;
	Shape whole;                     /* of all ranks' parts together */
	const Policy *policy;
	Device *device;
	const Ops *ops;
	/* true: the fused path. false: the eager path */
	bool fused;
	/* flash: the fused path uses FlashAttention and stores no P. atomic:
	 * parts of dQ are added in any order, not deterministically */
	bool flash, atomic;
	/* of each checkpoint_every blocks only the input of the first is saved, and
	 * backward runs recompute_blocks blocks at a time again; 0: all is saved */
	int checkpoint_every, recompute_blocks;
	ModelPlan plan;
	/* LayerNorm without shift in RMSNorm's place; eager path only */
	bool layernorm;
	size_t count;                    /* parameters */
	Param *params;                   /* in the order of shape_parameter */
	Hooks hooks;
	// declare the model's own buffers of parameters
	size_t extent;                   /* elements of each buffer (shape_extent) */
	uint64_t seed;                   /* from which the initial weights are drawn */
	/* weights.at is NULL where others have them, sharded. gradients.at is NULL
	 * until the first backward pass; its type is there before
	 * (model_set_gradient_type) */
	Array weights, gradients;
	/* the weights as matmuls read them, in the fused path and after
	 * model_keep_compute */
	Array compute_weights;
	Array cosine, sine;              /* (context, D/2) */
	Activations *activations;        /* one for each block */
	/* the last block's output and its norm (N, C); the norm's factor rho
	 * and, of LayerNorm, the mean mu (N) */
	Array x, norm, rho, mu;
	Array logits, losses, lse;       /* (N, V), (N), (N) */
	/* left by a head in chunks: gradients of norm (N, C) and of lm_head (V,
	 * C) */
	Array dnorm, dhead;
	Array loss;                      /* (1), mean of losses */
	/* a flag on the device; not 0: the loss, or a gradient under fp16, is
	 * not finite */
	int32_t *nonfinite;
	/* gradients are those of loss_scale * share * loss. loss_scale is 1
	 * except under fp16. share: this loss's part of the mean over all ranks,
	 * set before a forward pass */
	double loss_scale, share;
	long good_steps;                 /* since it changed */
	int32_t *tokens, *targets;       /* (N), on the device */
	size_t B, T;                     /* of the last batch */
	bool has_targets, has_activations;
	struct Fp8State *fp8;            /* model/fp8.h; NULL: no layer is in FP8 */
} Model;

#endif
