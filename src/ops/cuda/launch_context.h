/* launch_context.h: what launchers ask of their device */
#ifndef OPS_CUDA_LAUNCH_CONTEXT_H
#define OPS_CUDA_LAUNCH_CONTEXT_H

#include "device/cuda/cuda.h"
#include "device/device.h"

/* the stream to which operations are queued */
static inline cudaStream_t cuda_stream(const Device *d)
{
	return cuda_queue(d->state, COMPUTE);
}

/* the multiprocessors that kernels queued now may use */
static inline int cuda_multiprocessors(const Device *d)
{
	return cuda_chip(d->state).multiprocessors - d->spare_sms;
}

/* memory for the kernels of one operation; device_free when they are queued */
static inline void *cuda_scratch(Device *d, size_t nbytes, const char *what)
{
	return device_alloc(d, nbytes, MEM_TEMPORARY, what);
}

#endif
