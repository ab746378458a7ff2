/* cuda.h: an NVIDIA GPU as a device */
#ifndef DEVICE_CUDA_CUDA_H
#define DEVICE_CUDA_CUDA_H

#include <cuda_runtime.h>

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const Backend cuda_backend;

/* NULL when a GPU can be used, else why not */
const char  *cuda_missing(void);
/* where all work is queued */
cudaStream_t cuda_stream(void);
/* queues work there from now on, after what is queued already; returns where it
 * was queued before */
cudaStream_t cuda_use_stream(cudaStream_t stream);
int          cuda_multiprocessors(void);
/* the device that is open */
Device      *cuda_device(void);
/* memory for the duration of one operation, from the device's pool and counted
 * there; it may be released as soon as the work is queued */
void        *cuda_scratch(size_t nbytes, const char *what);
void         cuda_release(void *p);
/* calls release when the device is closed, the latest first; it frees what an
 * operation keeps from call to call */
void         cuda_at_close(void (*release)(void));
/* ends the program, naming the call, unless error is cudaSuccess */
void         cuda_expect(cudaError_t error, const char *call, const char *file,
	int line);
#define CUDA(call) cuda_expect((call), #call, __FILE__, __LINE__)

/* does the GPU run the kernels of this build? for cuda_missing */
cudaError_t  cuda_probe(void);

#ifdef __cplusplus
}
#endif

#endif
