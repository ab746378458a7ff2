/* hopper.c: tensor maps for TMA */
#include <assert.h>
#include <cudaTypedefs.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "ops/attention_plan.h"
#include "ops/cuda/hopper.h"
#include "ops/cuda/launch_context.h"

// ask whether the GPU is a Hopper, and heads are aligned
bool hopper_present(Device *d)
{
	int device, major, minor;
	CUDA(cudaGetDevice(&device));
	CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
		device));
	CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor,
		device));
	return major == 9 && minor == 0 && strcmp(CUDA_ARCH_BUILT, "sm_90a") == 0;
}

static bool stride_fits_tma(size_t elements)
{
	return 0 < elements && elements < (size_t)1 << 39 && elements % 8 == 0;
}

bool tma_aligned(Heads x)
{
	return (uintptr_t)x.x.at % 16 == 0 && stride_fits_tma(x.batch)
		&& stride_fits_tma(x.row) && stride_fits_tma(x.head);
}

// check which heads the kernels take
static bool has_kernels(Type type, size_t D)
{
	return (type == BF16 || type == FP16)
		&& (D == 16 || D == 32 || D == 64 || D == 80 || D == 128);
}

bool hopper_supports(Device *d, const Attention *a, const AttentionGradient *g)
{
	if (!hopper_present(d) || !has_kernels(a->q.x.type, a->D) || a->starts_q)
		return false;
	const bool moves = tma_aligned(a->q) && tma_aligned(a->k)
		&& tma_aligned(a->v) && tma_aligned(a->o);
	return (a->B == 0 || moves)
		&& (g == NULL || (tma_aligned(g->d_o) && tma_aligned(g->dq)
		&& tma_aligned(g->dk) && tma_aligned(g->dv)));
}

bool cuda_warp_specialized_supports(Device *d, const Attention *a,
	const AttentionGradient *g)
{
	return hopper_supports(d, a, g)
		&& !(g && a->causal && mask_diagonal(a) != 0);
}

// find the function that encodes tensor maps
static PFN_cuTensorMapEncodeTiled_v12000 encoder(void)
{
	static PFN_cuTensorMapEncodeTiled_v12000 encode;
	if (encode == NULL) {
		void *function = NULL;
		enum cudaDriverEntryPointQueryResult found;
		CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled",
			&function, 12000, cudaEnableDefault, &found));
		if (found != cudaDriverEntryPointSuccess)
			die("the driver has no tensor maps (%d)", (int)found);
		encode = (PFN_cuTensorMapEncodeTiled_v12000)function;
	}
	return encode;
}

// make a tensor map
CUtensorMap tensor_map(Heads x, const Attention *a, size_t n, unsigned rows)
{
	assert(tma_aligned(x) && type_size(x.x.type) == 2);
	const unsigned width = a->D >= 64 ? 64 : (unsigned)a->D;
	const cuuint64_t lengths[] = { a->D, n, a->H, a->B },
		strides[] = { x.row * 2, x.head * 2, x.batch * 2 };
	const cuuint32_t box[] = { width, rows, 1, 1 }, steps[] = { 1, 1, 1, 1 };
	CUtensorMap map;
	const CUresult made = encoder()(&map,
		x.x.type == FP16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
			: CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
		4, x.x.at, lengths, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		width == 64 ? CU_TENSOR_MAP_SWIZZLE_128B
			: width == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
			: CU_TENSOR_MAP_SWIZZLE_32B,
		CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	if (made != CUDA_SUCCESS)
		die("the driver makes no tensor map of these heads (%d)", (int)made);
	return map;
}
