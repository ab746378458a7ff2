/* attention_ways.c: the kernels of attention, and which of them is used */
#include <assert.h>
#include <stddef.h>

#include "ops/cuda/cuda.h"
#include "ops/cuda/hopper.h"

const AttentionWay cuda_ways[] = {
	{ "rows", cuda_rows_take, cuda_rows_forward, cuda_rows_backward,
		cuda_tiles_scratch },
	{ "tiles", cuda_tiles_take, cuda_tiles_forward, cuda_tiles_backward,
		cuda_tiles_scratch },
	{ "planes", cuda_planes_take, cuda_planes_forward, cuda_planes_backward,
		cuda_planes_scratch },
	{ "wgmma", hopper_takes, cuda_wgmma_forward, cuda_wgmma_backward,
		cuda_wgmma_scratch },
	{ "narrow", hopper_takes, cuda_narrow_forward, cuda_hopper_backward,
		cuda_hopper_backward_scratch },
	{ "wide", hopper_takes, cuda_wide_forward, cuda_hopper_backward,
		cuda_hopper_backward_scratch },
	{ "split", hopper_takes, cuda_split_forward, cuda_hopper_backward,
		cuda_hopper_backward_scratch },
	{ "hopper", hopper_takes, cuda_hopper_forward, cuda_hopper_backward,
		cuda_hopper_backward_scratch },
	{ 0 }
};

/* NULL: there is none */
static const AttentionWay *last_way(const Attention *a,
	const AttentionGradient *g)
{
	const AttentionWay *last = NULL;
	for (const AttentionWay *way = cuda_ways; way->name; way++)
		if (way->takes(a, g))
			last = way;
	return last;
}

bool cuda_fused_attends(Type type, size_t D)
{
	Attention a = { .D = D, .q.x.type = type };
	return last_way(&a, NULL) != NULL;
}

size_t cuda_fused_attention_scratch(const Attention *a)
{
	return last_way(a, NULL)->scratch(a);
}

void cuda_fused_attention_forward(Attention a)
{
	const AttentionWay *way = last_way(&a, NULL);
	assert(way && "cuda_fused_attends was asked");
	way->forward(a);
}

void cuda_fused_attention_backward(Attention a, AttentionGradient g)
{
	const AttentionWay *way = last_way(&a, &g);
	assert(way && "cuda_fused_attends was asked");
	way->backward(a, g);
}
