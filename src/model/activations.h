/* activations.h: what a block saves for its backward pass */
#ifndef MODEL_ACTIVATIONS_H
#define MODEL_ACTIVATIONS_H

#include "ops/array.h"

typedef struct Activations {
	Array x, norm1, rho1, mu1;       /* (N, C), (N, C), (N), (N) */
	Array q, k, v;                   /* (B, T, H, D), q and k rotated */
	Array qkv;                       /* (B, T, 3, H, D) of the fused path */
	Array P;                         /* (B, H, T, T) attention probabilities */
	Array P_cast;                    /* as matmuls read P, if that is a copy */
	Array L;                         /* (B, H, T) logsumexp, in P's place */
	/* (N, H D): output of the heads; (N, C): residual stream after attention */
	Array o, x_mid;
	Array norm2, rho2, mu2;          /* (N, C), (N), (N) */
	Array gate, up, h;               /* (N, F) */
	Array gate_up;                   /* (N, 2, F) of the fused path */
} Activations;

#endif
