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
	Array weight;        /* the master */
	/* what matmuls read: the weight itself or a copy of another type; at NULL
	 * in the eager path, which casts when it needs to, but for
	 * model_keep_compute */
	Array compute;
	Array gradient;      /* at NULL until the first backward pass */
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
	/* with targets, logits are there for so many tokens at a time, and a pass
	 * leaves none. 0: for all at once */
	long head_chunk;
	/* so many blocks, the first ones, do not keep gate and up, or queries, keys
	 * and values: the backward pass makes them again */
	int drop_gate_up, drop_qkv;
} ModelPlan;

typedef struct Model {
	Shape shape;
	/* NULL: the model is on one device. Else shape is that of this rank's part of
	 * it; the fused path only */
	const RankGroup *group;
	Shape whole;                     /* of all ranks' parts together */
	const Policy *policy;
	Device *device;
	const Ops *ops;
	/* the fused path; else one eager operation after another */
	bool fused;
	/* the fused path uses FlashAttention and has no P; it adds up the parts of
	 * the gradients of queries as they come, and not in a fixed order */
	bool flash, atomic;
	/* of every `checkpoint_every` blocks only the first's input is saved, 0:
	 * everything of every block; backward, `recompute_blocks` blocks at a time
	 * are run again */
	int checkpoint_every, recompute_blocks;
	ModelPlan plan;
	/* LayerNorm without shift in RMSNorm's place; eager path only */
	bool layernorm;
	size_t count;                    /* parameters */
	Param *params;                   /* in the order of shape_parameter */
	Hooks hooks;
	// declare the model's own buffers of parameters
	size_t extent;                   /* elements of each, shape_extent */
	uint64_t seed;                   /* of the weights */
	/* weights.at is NULL where others have them, sharded. gradients.at is NULL until
	 * the first backward pass; its type is there before
	 * (model_set_gradient_type) */
	Array weights, gradients;
	/* of the fused path, and after model_keep_compute: the weights as matmuls read
	 * them */
	Array compute_weights;
	Array cosine, sine;              /* (context, D/2) */
	Activations *activations;        /* one for each block */
	/* last block's output, its final norm (N, C), and the norm's factor and, of
	 * LayerNorm, mean (N) */
	Array x, norm, rho, mu;
	Array logits, losses, lse;       /* (N, V), (N), (N) */
	/* of a head in chunks: gradients of norm and of the head's weights */
	Array dnorm, dhead;
	Array loss;                      /* (1), mean of losses */
	/* not 0: the loss, or a gradient under fp16, is infinite or NaN */
	int32_t *nonfinite;
	/* gradients are those of loss_scale share times the loss. The scale is 1 but
	 * under fp16; share: of the loss of all ranks, set before a forward pass */
	double loss_scale, share;
	long good_steps;                 /* since it changed */
	int32_t *tokens, *targets;       /* (N), on the device */
	size_t B, T;                     /* of the last batch */
	bool has_targets, has_activations;
} Model;

// declare helpers of the paths
#define NORM_EPS 1e-5   /* of every RMSNorm, as in the staff model */

Array temporary(Model *m, size_t n, Type type, const char *what);
/* of the type that the policy gives to kind */
Array activation(Model *m, size_t n, OpKind kind, const char *what);
/* what a row is saved by, never rounded */
Array statistic(Model *m, size_t n, const char *what);
void  array_drop(Model *m, Array *a);
/* x itself when matmuls can read it as that type, else a temporary copy;
 * give_back frees only a copy */
Array take_as(Model *m, Array x, size_t n, Type type);
void  give_back(Model *m, Array *copy, Array x);

/* of parameter i; the gradient is there after the first backward pass */
Array model_weight(const Model *m, int i);
Array model_gradient(const Model *m, int i);
/* the index of a block's parameter */
static inline int in_block(const Model *m, int layer, BlockParameter which)
{
	return shape_block_parameter(&m->shape, layer, which);
}

/* these call the model's hooks */
void  enter_unit(Model *m, int unit, bool backward);
void  leave_unit(Model *m, int unit, bool backward);
void  announce_gradients(Model *m, int first, int count);
/* parameter i's gradient: beta, 0 or 1, times itself, plus the addend, which is
 * dropped; announces it */
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
