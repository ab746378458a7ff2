/* gate.cuh: SwiGLU of one element, and its gradients */
#ifndef OPS_CUDA_GATE_CUH
#define OPS_CUDA_GATE_CUH

#include "ops/cuda/common.cuh"

/* within some roundings; 0 and 1 in the limits */
__device__ inline float sigmoid(float x)
{
	return __fdividef(1, 1 + __expf(-x));
}

__device__ inline float gated(float a, float b)
{
	return a * sigmoid(a) * b;
}

struct GateGradient { float a, b, h; };

/* of a and b, given that of h; and h again */
__device__ inline GateGradient gate_gradient_of(float a, float b, float dh)
{
	const float s = sigmoid(a);
	return { dh * b * s * (1 + a * (1 - s)), dh * a * s, a * s * b };
}

#endif
