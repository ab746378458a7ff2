/* model.h: the staff's Transformer: parameters, forward, loss, backward */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "model/state.h"

/* weights are drawn from (seed, index of the tensor, index of the element) */
Model *model_new(Device *device, const Shape *shape, const Policy *policy,
	uint64_t seed);
/* this rank's part of it, which may be split so (group_error); the group stays
 * until the model is freed. To be fused before its first pass */
Model *model_new_part(Device *device, const Shape *whole, const Policy *policy,
	uint64_t seed, const RankGroup *group);
/* has no memory for weights: whoever shards it points its parameters at some. Its
 * weights would be those of model_new */
Model *model_new_bare(Device *device, const Shape *shape, const Policy *policy,
	uint64_t seed);
/* n elements of parameter i, from element `first` on, as model_new draws them */
void   model_draw(const Model *m, Array to, int i, size_t first, size_t n);
void   model_free(Model **model);
#define FUSIONS "eager|fused"
/* of programs that record the eager path, too (jit/jit.h) */
#define FUSIONS_AND_JIT FUSIONS "|jit"
enum { FUSION_EAGER, FUSION_FUSED, FUSION_JIT };
extern const char *const fusion_names[];
/* takes the fused path from now on, with FlashAttention where there is any */
void   model_fuse(Model *m);
/* linear layers of the eager path read weights that are cast when they change,
 * not for each matmul; the fused path's always do. Same bits */
void   model_keep_compute(Model *m);
#define ATTENTIONS "naive|flash"
/* the fused path uses FlashAttention, if it can, or naive attention */
void   model_set_attention(Model *m, bool flash);
/* from now on K blocks at a time are run again in the backward pass; nested: from
 * the inputs of halves of halves, few of them saved at a time. K = 0: none */
void   model_recompute(Model *m, int K, bool nested);
/* from the next forward pass on. What it drops belongs to the fused path, where
 * no blocks are run again */
void   model_follow(Model *m, const ModelPlan *plan);
/* after weights were written other than by an optimizer */
void   model_weights_changed(Model *m);

/* points all parameters at the model's own buffers */
void   model_view_params(Model *m);
/* before the first backward pass: gradients go to the caller's memory, zeros for
 * m->extent elements. At NULL: they leave it, and have a's type later */
void   model_set_gradients(Model *m, Array a);
/* gradients are stored as this type, and not as policy->gradient; before the
 * first backward pass. On a GPU BF16 belongs to policies whose matmuls read
 * bf16: from operands of another type the library does not multiply to it, and
 * cuda_matmul_fallback takes its place, slowly */
void   model_set_gradient_type(Model *m, Type type);

// declare a span
/* n elements: weights, what matmuls read of them (at NULL: the weights),
 * gradients */
typedef struct Span {
	Array weight, compute, gradient;
	size_t n;
} Span;

/* of the whole model, in order; spans has room for shape_nparameters. The eager
 * path has one for each parameter, as an optimizer that walks a list of them, or
 * after model_keep_compute for each unit; the fused path has as few as there can
 * be. Returns how many */
int     model_spans(const Model *m, Span *spans);

/* brings a batch to the device. tokens, targets: host, (B, T), each below
 * vocab; targets may be NULL: no loss. All ranks of a group have the same batch;
 * ends the program if its tokens do not split evenly over them */
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
/* queues the gradients of the mean loss; overwrites the last ones, or adds */
void   model_backward(Model *m, bool accumulate);
/* drops activations and logits that a forward pass left */
void   model_clear(Model *m);

#endif
