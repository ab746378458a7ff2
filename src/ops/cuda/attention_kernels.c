/* attention_kernels.c: the kernels of attention, and which of them is used */
#include <assert.h>
#include <stddef.h>

#include "ops/cuda/cuda.h"
#include "ops/cuda/hopper.h"
#include "ops/naive_attention.h"

// list the attention kernels of a GPU
const AttentionKernel cuda_attention_kernels[] = {
	{ "naive", naive_attention_supports, naive_attention_forward,
		naive_attention_backward, naive_attention_scratch, true },
	{ "simt", cuda_simt_supports, cuda_simt_forward, cuda_simt_backward,
		cuda_mma_sync_scratch },
	{ "mma_sync", cuda_mma_sync_supports, cuda_mma_sync_forward,
		cuda_mma_sync_backward, cuda_mma_sync_scratch },
	{ "split_fp16", cuda_split_fp16_supports, cuda_split_fp16_forward,
		cuda_split_fp16_backward, cuda_split_fp16_scratch },
	{ "wgmma", hopper_supports, cuda_wgmma_forward, cuda_wgmma_backward,
		cuda_wgmma_scratch },
	{ "m64", hopper_supports, cuda_m64_forward, cuda_warp_specialized_backward,
		cuda_warp_specialized_scratch },
	{ "multi_warpgroup", hopper_supports, cuda_multi_warpgroup_forward,
		cuda_warp_specialized_backward, cuda_warp_specialized_scratch },
	{ "split_kv", hopper_supports, cuda_split_kv_forward,
		cuda_warp_specialized_backward, cuda_warp_specialized_scratch },
	{ "warp_specialized", hopper_supports, cuda_warp_specialized_forward,
		cuda_warp_specialized_backward, cuda_warp_specialized_scratch },
	{ 0 }
};

// choose the last kernel that takes a problem
/* the kernel that the model uses; NULL: none takes this problem */
static const AttentionKernel *last_supported(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	const AttentionKernel *last = NULL;
	for (const AttentionKernel *kernel = cuda_attention_kernels; kernel->name;
		kernel++)
		if (!kernel->saves_P && kernel->supports(d, a, g))
			last = kernel;
	return last;
}

// pass attention on to the kernel that was chosen
bool cuda_supports_attention(Device *d, Type type, size_t D)
{
	Attention a = { .D = D, .q.x.type = type };
	return last_supported(d, &a, NULL) != NULL;
}

size_t cuda_attention_scratch(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	return last_supported(d, a, g)->scratch(d, a, g);
}

void cuda_attention_forward(Device *d, Attention a)
{
	const AttentionKernel *kernel = last_supported(d, &a, NULL);
	assert(kernel && "cuda_supports_attention was asked");
	kernel->forward(d, a);
}

void cuda_attention_backward(Device *d, Attention a, AttentionGradient g)
{
	const AttentionKernel *kernel = last_supported(d, &a, &g);
	assert(kernel && "cuda_supports_attention was asked");
	kernel->backward(d, a, g);
}
