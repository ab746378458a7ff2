#include "ops/ops.h"

#include <assert.h>
#include <string.h>

#include "ops/cpu/cpu.h"

static const Ops cpu_ops = {
	.fill = cpu_fill, .cast = cpu_cast, .add = cpu_add, .mean = cpu_mean,
		.count_nonfinite = cpu_count_nonfinite,
	.matmul = cpu_matmul,
	.embedding_forward = cpu_embedding_forward,
		.embedding_backward = cpu_embedding_backward,
	.rmsnorm_forward = cpu_rmsnorm_forward,
		.rmsnorm_backward = cpu_rmsnorm_backward,
	.rope = cpu_rope,
	.softmax_forward = cpu_softmax_forward,
		.softmax_backward = cpu_softmax_backward,
	.swiglu_forward = cpu_swiglu_forward,
		.swiglu_backward = cpu_swiglu_backward,
	.relu_forward = cpu_relu_forward, .relu_backward = cpu_relu_backward,
	.layernorm_forward = cpu_layernorm_forward,
		.layernorm_backward = cpu_layernorm_backward,
	.cross_entropy_forward = cpu_cross_entropy_forward,
		.cross_entropy_backward = cpu_cross_entropy_backward,
	.adamw = cpu_adamw,
};

const Ops *ops_for(const Device *device)
{
	assert(strcmp(device->backend->name, "cpu") == 0);
	(void)device;
	return &cpu_ops;
}
