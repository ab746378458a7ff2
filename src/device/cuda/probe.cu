#include "device/cuda/cuda.h"

__global__ void probe(void)
{
}

extern "C" cudaError_t cuda_probe(void)
{
	cudaFuncAttributes attributes;
	return cudaFuncGetAttributes(&attributes, probe);
}
