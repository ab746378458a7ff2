#include "ops/ops.h"

#include <string.h>

#include "ops/cpu/cpu.h"
#ifdef HAVE_CUDA
#include "ops/cuda/cuda.h"
#endif

#define OPERATIONS(PREFIX) {                                                \
	.fill = PREFIX##_fill, .draw = PREFIX##_draw, .cast = PREFIX##_cast,    \
	.reads = PREFIX##_reads, .add = PREFIX##_add, .mean = PREFIX##_mean,    \
	.count_nonfinite = PREFIX##_count_nonfinite,                            \
	.matmul = PREFIX##_matmul,                                              \
	.embedding_forward = PREFIX##_embedding_forward,                        \
	.embedding_backward = PREFIX##_embedding_backward,                      \
	.rmsnorm_forward = PREFIX##_rmsnorm_forward,                            \
	.rmsnorm_backward = PREFIX##_rmsnorm_backward,                          \
	.rope = PREFIX##_rope,                                                  \
	.softmax_forward = PREFIX##_softmax_forward,                            \
	.softmax_backward = PREFIX##_softmax_backward,                          \
	.swiglu_forward = PREFIX##_swiglu_forward,                              \
	.swiglu_backward = PREFIX##_swiglu_backward,                            \
	.relu_forward = PREFIX##_relu_forward,                                  \
	.relu_backward = PREFIX##_relu_backward,                                \
	.layernorm_forward = PREFIX##_layernorm_forward,                        \
	.layernorm_backward = PREFIX##_layernorm_backward,                      \
	.cross_entropy_forward = PREFIX##_cross_entropy_forward,                \
	.cross_entropy_backward = PREFIX##_cross_entropy_backward,              \
	.adamw = PREFIX##_adamw,                                                \
	.fused = {                                                              \
		.rmsnorm_forward = PREFIX##_fused_rmsnorm_forward,                  \
		.rmsnorm_backward = PREFIX##_fused_rmsnorm_backward,                \
		.rope = PREFIX##_fused_rope,                                        \
		.softmax_forward = PREFIX##_fused_softmax_forward,                  \
		.softmax_backward = PREFIX##_fused_softmax_backward,                \
		.swiglu_forward = PREFIX##_fused_swiglu_forward,                    \
		.swiglu_backward = PREFIX##_fused_swiglu_backward,                  \
		.cross_entropy = PREFIX##_fused_cross_entropy,                      \
		.adamw = PREFIX##_fused_adamw,                                      \
		.supports_attention = PREFIX##_fused_supports_attention,            \
		.attention_scratch = PREFIX##_fused_attention_scratch,              \
		.attention_forward = PREFIX##_fused_attention_forward,              \
		.attention_backward = PREFIX##_fused_attention_backward,            \
	},                                                                      \
	.attention_kernels = PREFIX##_attention_kernels,                        \
}

static const Ops cpu_ops = OPERATIONS(cpu);
#ifdef HAVE_CUDA
static const Ops cuda_ops = OPERATIONS(cuda);
#endif

const Ops *ops_for(const Device *device)
{
#ifdef HAVE_CUDA
	if (strcmp(device->backend->name, "cuda") == 0)
		return &cuda_ops;
#endif
	(void)device;
	return &cpu_ops;
}
