/* nvrtc.h: CUDA compiled at run time; works without a GPU */
#ifndef JIT_CUDA_NVRTC_H
#define JIT_CUDA_NVRTC_H

#include "jit/compiler.h"

/* machine code for "sm_90" and the like; at NULL: *complaint says why not */
Bytes nvrtc_compile(const char *source, const char *architecture,
	char **complaint);

#endif
