/* cuda.h: an NVIDIA GPU as a device */
#ifndef DEVICE_CUDA_CUDA_H
#define DEVICE_CUDA_CUDA_H

#include <cuda_runtime.h>

#include "device/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const Backend cuda_backend;

// declare what kernels and libraries ask the GPU
typedef struct ChipFacts {
	int major, minor;                   /* sm_90: 9, 0 */
	int multiprocessors;
} ChipFacts;
ChipFacts    cuda_chip(const void *state);
/* Returns the stream of a queue, and makes this GPU the one that CUDA's calls
 * of this thread are for. */
cudaStream_t cuda_queue(const void *state, Queue queue);
/* Puts stream in the place of the compute queue's stream from now on; returns
 * the former one, which stays open. */
cudaStream_t cuda_set_stream(void *state, cudaStream_t stream);
/* does so behind what is queued in the former one */
void         cuda_replace_stream(void *state, cudaStream_t stream);

/* ends the program, naming the call, unless error is cudaSuccess */
void         cuda_expect(cudaError_t error, const char *call, const char *file,
	int line);
#define CUDA(call) cuda_expect((call), #call, __FILE__, __LINE__)

/* Does the current GPU run the kernels of this build? cudaSuccess or the reason
 * why not, for cuda_backend.why_missing. */
cudaError_t  cuda_probe(void);

#ifdef __cplusplus
}
#endif

#endif
