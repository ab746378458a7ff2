/* nvrtc.h: CUDA compiled at run time; works without a GPU */
#ifndef JIT_CUDA_NVRTC_H
#define JIT_CUDA_NVRTC_H

#include "jit/compiler.h"

/* machine code for an architecture such as "sm_90"; bytes.at is NULL if the
 * source does not compile, and then *complaint, which the caller frees, says
 * why */
Bytes nvrtc_compile(const char *source, const char *architecture,
	char **complaint);

#endif
