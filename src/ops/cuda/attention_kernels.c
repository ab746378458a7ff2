/* attention_kernels.c: the kernels of attention, and which of them is used */
#include <assert.h>
#include <stddef.h>

#include "ops/cuda/cuda.h"
#include "ops/cuda/hopper.h"
#include "ops/naive_attention.h"

// sum the gradients of shared heads
#define SUMMED(NAME) \
	static void NAME##_backward(Device *d, Attention a, AttentionGradient g) \
	{ \
		cuda_sum_over_groups(d, a, g, cuda_##NAME##_backward); \
	} \
	static size_t NAME##_scratch(Device *d, const Attention *a, \
		const AttentionGradient *g) \
	{ \
		return cuda_##NAME##_scratch(d, a, g) + cuda_group_scratch(a, g); \
	}

SUMMED(mma_sync)
SUMMED(split_fp16)
SUMMED(wgmma)
SUMMED(warp_specialized)
static void simt_backward(Device *d, Attention a, AttentionGradient g)
{
	cuda_sum_over_groups(d, a, g, cuda_simt_backward);
}

// list the attention kernels of a GPU
const AttentionKernel cuda_attention_kernels[] = {
	{ "naive", naive_attention_supports, naive_attention_forward,
		naive_attention_backward, naive_attention_scratch, true },
	{ "simt", cuda_simt_supports, cuda_simt_forward, simt_backward,
		mma_sync_scratch },
	{ "mma_sync", cuda_mma_sync_supports, cuda_mma_sync_forward,
		mma_sync_backward, mma_sync_scratch },
	{ "split_fp16", cuda_split_fp16_supports, cuda_split_fp16_forward,
		split_fp16_backward, split_fp16_scratch },
	{ "wgmma", hopper_supports, cuda_wgmma_forward, wgmma_backward,
		wgmma_scratch },
	{ "m64", cuda_warp_specialized_supports, cuda_m64_forward,
		warp_specialized_backward, warp_specialized_scratch },
	{ "multi_warpgroup", cuda_warp_specialized_supports,
		cuda_multi_warpgroup_forward, warp_specialized_backward,
		warp_specialized_scratch },
	{ "split_kv", cuda_warp_specialized_supports, cuda_split_kv_forward,
		warp_specialized_backward, warp_specialized_scratch },
	{ "warp_specialized", cuda_warp_specialized_supports,
		cuda_warp_specialized_forward, warp_specialized_backward,
		warp_specialized_scratch },
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
