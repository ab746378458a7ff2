/* model.h: the staff's Transformer: parameters, forward, loss, backward */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/choices.h"
#include "model/parameters.h"

/* weights are drawn from (seed, index of the tensor, index of the element) */

// declare how a model is made
Model *model_new(Device *device, const Shape *shape, const Policy *policy,
	uint64_t seed);
/* this rank's part of a model that group_error allows to be split. The group
 * has to outlive the model, and model_fuse has to be called before the first
 * pass */
Model *model_new_part(Device *device, const Shape *whole, const Policy *policy,
	uint64_t seed, const RankGroup *group);
/* a model without memory for weights, for a trainer that shards them and points
 * the parameters at its own memory. Its weights are to be those of model_new */
Model *model_new_bare(Device *device, const Shape *shape, const Policy *policy,
	uint64_t seed);
/* n elements of parameter i, from element `first` on, as model_new draws
 * them */
void   model_draw(const Model *m, Array to, int i, size_t first, size_t n);
void   model_free(Model **model);

// declare how a model is run
#define FUSIONS_OF(FIRST, NEXT) \
	FIRST(FUSION_EAGER, "eager") NEXT(FUSION_FUSED, "fused")
/* for programs that can also record the eager path (jit/jit.h) */
#define ALL_FUSIONS_OF(FIRST, NEXT) \
	FUSIONS_OF(FIRST, NEXT) NEXT(FUSION_JIT, "jit")
#define FUSIONS CHOICES(FUSIONS_OF)
#define FUSIONS_AND_JIT CHOICES(ALL_FUSIONS_OF)
enum { CHOICE_IDS(ALL_FUSIONS_OF) NFUSIONS };
extern const char *const fusion_names[NFUSIONS];
/* takes the fused path from now on, with FlashAttention where there is any */
void   model_fuse(Model *m);
/* keeps weights in the format of matmuls, cast when they change and not for
 * each matmul. The fused path always does so. The bits of all results are
 * the same */
void   model_keep_compute(Model *m);
#define ATTENTIONS_OF(FIRST, NEXT) \
	FIRST(ATTENTION_NAIVE, "naive") NEXT(ATTENTION_FLASH, "flash")
#define ATTENTIONS CHOICES(ATTENTIONS_OF)
enum { CHOICE_IDS(ATTENTIONS_OF) NATTENTIONS };
/* the fused path uses FlashAttention, if it can, or naive attention */
void   model_set_attention(Model *m, bool flash);
/* makes the backward pass run K blocks at a time again; K = 0: none. nested:
 * the blocks are halved repeatedly, and few inputs are saved at a time */
void   model_recompute(Model *m, int K, bool nested);
/* applies a plan from the next forward pass on. Dropping is for the fused
 * path, and not together with model_recompute */
void   model_follow(Model *m, const ModelPlan *plan);
/* tells the model that something other than an optimizer has written weights */
void   model_weights_changed(Model *m);

/* points all parameters at the model's own buffers */
void   model_view_params(Model *m);
/* before the first backward pass: gradients go to a, the caller's memory of
 * m->extent zeros. a.at NULL: detaches them, and the next backward pass makes a
 * buffer of a.type */
void   model_set_gradients(Model *m, Array a);
/* before the first backward pass: stores gradients in this type and not in
 * policy->gradient. On a GPU BF16 needs a policy whose matmuls read bf16: the
 * library has no matmul from other operands to bf16, and cuda_matmul_fallback,
 * which is slow, takes its place */
void   model_set_gradient_type(Model *m, Type type);

/* copies a batch to the device. tokens, targets: on the host, (B, T), each
 * below vocab. targets NULL: no loss is computed. All ranks of a group pass
 * the same batch; ends the program if its tokens do not split evenly over
 * them */
void   model_load(Model *m, const int32_t *tokens, const int32_t *targets,
	size_t B, size_t T);
/* queues the forward pass of the loaded batch. keep: saves activations for
 * model_backward. Logits stay in m->logits until the next pass, except that
 * with keep the fused path puts their gradient there */
void   model_run(Model *m, bool keep);
/* waits for the last pass and returns its mean loss. Ends the program if
 * that is not finite */
double model_loss(Model *m);
/* model_load, model_run and model_loss; returns 0 without targets */
double model_forward(Model *m, const int32_t *tokens, const int32_t *targets,
	size_t B, size_t T, bool keep);
/* queues the backward pass of the mean loss; adds to the gradients if
 * accumulate, else overwrites them */
void   model_backward(Model *m, bool accumulate);
/* frees the activations and logits that a forward pass left */
void   model_clear(Model *m);

#endif
