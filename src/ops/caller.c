#include "ops/caller.h"

#include <stdio.h>
#include <string.h>

#ifdef HAVE_CUDA
#include "device/cuda/cuda.h"
#endif

Device *caller_device(bool gpu)
{
	enum { MOST = 64 };
	static Device *cpu, *gpus[MOST];
	int ordinal = 0;
	char name[16] = "cpu";
#ifdef HAVE_CUDA
	if (gpu && (cudaGetDevice(&ordinal) != cudaSuccess || ordinal >= MOST
		|| (gpus[ordinal] == NULL && cuda_backend.missing(ordinal))))
		return NULL;
#else
	if (gpu)
		return NULL;
#endif
	if (gpu)
		snprintf(name, sizeof name, "cuda:%d", ordinal);
	Device **device = gpu ? &gpus[ordinal] : &cpu;
	if (*device == NULL)
		*device = device_open(name);
	return *device;
}

void *caller_stream(Device *d, void *stream)
{
#ifdef HAVE_CUDA
	if (strcmp(d->backend->name, "cuda") == 0)
		return cuda_replace_stream(d->state, stream);
#endif
	return stream;
}
