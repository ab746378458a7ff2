/* state.h: a model as its paths see it: parameters, what a pass leaves */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include "model/group.h"
#include "model/hooks.h"
#include "model/precision.h"
#include "model/shape.h"
#include "ops/array.h"
#include "ops/ops.h"

// declare a parameter as a view
typedef struct Param {
	Parameter about;
	Array weight;        /* the master weight */
	/* what matmuls read: the weight or a copy of another type. at is NULL in
	 * the eager path, which casts for each matmul, unless model_keep_compute
	 * was called */
	Array compute;
	Array gradient;      /* at is NULL until the first backward pass */
} Param;

// declare the saved activations of a block
typedef struct Activations {
	Array x, norm1, rho1, mu1;       /* (N, C), (N, C), (N), (N) */
	Array q, k, v;                   /* (B, T, H, D), q and k rotated */
	Array qkv;                       /* (B, T, 3, H, D) of the fused path */
	Array P;                         /* (B, H, T, T) attention probabilities */
	Array L;                         /* (B, H, T) logsumexp, in P's place */
	/* (N, H D): output of the heads; (N, C): residual stream after attention */
	Array o, x_mid;
	Array norm2, rho2, mu2;          /* (N, C), (N), (N) */
	Array gate, up, h;               /* (N, F) */
	Array gate_up;                   /* (N, 2, F) of the fused path */
} Activations;

// declare how a pass saves memory
typedef struct ModelPlan {
	/* tokens whose logits exist at a time, in a pass with targets, which then
	 * leaves no logits. 0: all tokens at once */
	long head_chunk;
	/* how many of the first blocks drop gate and up, and how many drop queries,
	 * keys and values; the backward pass computes them again */
	int drop_gate_up, drop_qkv;
} ModelPlan;

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
	/* of the fused path, and after model_keep_compute: the weights as matmuls read
	 * them */
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
	/* on the device; not 0: the loss, or a gradient under fp16, is not
	 * finite */
	int32_t *nonfinite;
	/* gradients are those of loss_scale * share * loss. loss_scale is 1
	 * except under fp16. share: this loss's part of the mean over all ranks,
	 * set before a forward pass */
	double loss_scale, share;
	long good_steps;                 /* since it changed */
	int32_t *tokens, *targets;       /* (N), on the device */
	size_t B, T;                     /* of the last batch */
	bool has_targets, has_activations;
} Model;

// declare helpers of the paths
#define NORM_EPS 1e-5   /* of every RMSNorm, as in the staff model */

Array temporary(Model *m, size_t n, Type type, const char *what);
/* n elements of the type that the policy gives to results of this kind */
Array activation(Model *m, size_t n, OpKind kind, const char *what);
/* n statistics of rows (a norm's factor, a logsumexp), of TYPE_REAL */
Array statistic(Model *m, size_t n, const char *what);
/* frees the array, if there is one, and sets at to NULL */
void  array_drop(Model *m, Array *a);
/* x itself if matmuls can read it as that type, else a temporary copy of n
 * elements; release_cast frees the copy, if one was made of x */
Array cast_if_needed(Model *m, Array x, size_t n, Type type);
void  release_cast(Model *m, Array *copy, Array x);

/* the arrays of parameter i; the gradient exists from the first backward
 * pass on */
Array model_weight(const Model *m, int i);
Array model_gradient(const Model *m, int i);
/* the index of a block's parameter */
static inline int in_block(const Model *m, int layer, BlockParameter which)
{
	return shape_block_parameter(&m->shape, layer, which);
}

/* these call the model's hooks, where there are any */
void  enter_unit(Model *m, int unit, bool backward);
void  leave_unit(Model *m, int unit, bool backward);
void  announce_gradients(Model *m, int first, int count);
/* sets parameter i's gradient to beta (0 or 1) times itself plus the addend,
 * frees the addend, and announces the gradient */
void  take_gradient(Model *m, int i, Array *addend, double beta);

// declare the steps of a group
/* how many tokens of the residual stream this rank has; all without a group */
size_t own_tokens(const Model *m);
/* the rank's own rows of x: (B T, C), a part of x */
Array own_rows(const Model *m, Array x);
/* x holds the own rows; the rows of the other ranks are filled in */
void  gather_rows(Model *m, Array x, const char *what);
/* x has an addend for each row; the own rows end with the sums over all ranks,
 * the other rows with anything */
void  scatter_sums(Model *m, Array x, const char *what);
/* asynchronous gather_rows and scatter_sums: join_group waits for them. No-op on
 * a device without a group */
void  start_gather(Model *m, Array x, const char *what, GroupSlot slot);
void  start_scatter(Model *m, Array x, const char *what, GroupSlot slot);
void  join_group(Model *m, GroupSlot slot);
/* returns the own rows of what all ranks have embedded, summed; drops the
 * argument */
Array keep_own_sums(Model *m, Array embedded);
/* losses of the rows and, unless dlogits.at is NULL, the gradient of the
 * logits */
void  loss_of_group(Model *m, Array losses, Array dlogits, Array logits,
	const int32_t *targets, double scale, size_t n);

#endif
