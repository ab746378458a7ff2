#include "ops/outside_calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#ifdef HAVE_CUDA
#include "device/cuda/cuda.h"
#endif

// open a device for callers
/* a device that serves callers */
typedef struct ServedDevice {
	pthread_mutex_t lock;   /* held during a call */
	Device *device;
	void *stream;           /* that used the device's scratch last */
	bool called;            /* is there one? */
} ServedDevice;

/* the entry of the CPU or of a GPU, opened at the first call; NULL: there is no
 * such GPU */
static ServedDevice *served_device(bool gpu, int number)
{
	enum { MOST = 64 };
	static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
	static ServedDevice *cpu, *gpus[MOST];
	char name[16] = "cpu";
	if (gpu && (number < 0 || number >= MOST))
		return NULL;
	ServedDevice **found = gpu ? &gpus[number] : &cpu, *served;
	pthread_mutex_lock(&opening);
#ifdef HAVE_CUDA
	bool missing = gpu && *found == NULL && cuda_backend.why_missing(number);
#else
	bool missing = gpu;
#endif
	if (*found == NULL && !missing) {
		if (gpu)
			snprintf(name, sizeof name, "cuda:%d", number);
		*found = need(calloc(1, sizeof **found));
		pthread_mutex_init(&(*found)->lock, NULL);
		(*found)->device = device_open(name);
	}
	served = *found;
	pthread_mutex_unlock(&opening);
	return served;
}

// make a GPU current, with the caller's stream
#ifdef HAVE_CUDA
static void restore_gpu(int before, int now)
{
	if (before != now)
		CUDA(cudaSetDevice(before));
}

/* is the stream being captured into a CUDA graph? */
static bool is_capturing(void *stream)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	if (stream && cudaStreamIsCapturing(stream, &status) != cudaSuccess)
		cudaGetLastError();               /* it has been dealt with */
	return status != cudaStreamCaptureStatusNone;
}

/* queues what follows on `stream`, after what uses the device's scratch; false: a
 * graph would hold that */
static bool follow_stream(ServedDevice *served, void *stream)
{
	if (is_capturing(stream))
		return false;
	if (served->called && served->stream == stream)
		return true;
	if (is_capturing(served->stream))
		return false;
	cuda_replace_stream(served->device->state, stream);
	served->called = true;
	served->stream = stream;
	return true;
}
#endif

// begin and end a call from outside
CallerStatus caller_enter(Caller *c, bool gpu, int number)
{
	*c = (Caller){ .before = -1 };
#ifdef HAVE_CUDA
	if (gpu && cudaGetDevice(&c->before) != cudaSuccess)
		return CALLER_NO_GPU;
#endif
	c->served = served_device(gpu, number);
	if (c->served) {
		c->device = c->served->device;
		pthread_mutex_lock(&c->served->lock);
	}
#ifdef HAVE_CUDA
	if (gpu)
		restore_gpu(c->before, c->served ? number : -1);
#endif
	return c->served ? CALLER_OK : CALLER_NO_GPU;
}

bool caller_share(Caller *c, void *stream)
{
#ifdef HAVE_CUDA
	if (c->before >= 0)
		return follow_stream(c->served, stream);
#endif
	return true;
}

CallerStatus caller_queue(Caller *c, void *stream, CallerScratch scratch,
	size_t nbytes)
{
	nbytes = (nbytes + 63) / 64 * 64;       /* as blocks of a device are */
	if (nbytes > 0 && scratch.get == NULL) {
		if (!caller_share(c, stream))
			return CALLER_CAPTURES;
		if (!device_reserve(c->device, nbytes))
			return CALLER_NO_MEMORY;
		c->block = device_alloc(c->device, nbytes, MEM_TEMPORARY, "a call");
		device_lend(c->device, c->block, nbytes);
		return CALLER_OK;
	}
	void *at = nbytes > 0 ? scratch.get(scratch.owner, (int64_t)nbytes) : NULL;
	if (nbytes > 0 && at == NULL)
		return CALLER_NO_MEMORY;
	device_lend(c->device, at, nbytes);
	c->lent = true;
#ifdef HAVE_CUDA
	if (c->before >= 0)
		c->own = cuda_set_stream(c->device->state, stream);
#endif
	return CALLER_OK;
}

void caller_leave(Caller *c)
{
	if (c->lent || c->block)
		device_return(c->device);
	device_free(c->device, c->block);
#ifdef HAVE_CUDA
	int now = c->before;
	if (c->lent && c->before >= 0)
		cuda_set_stream(c->device->state, c->own);
	if (c->before >= 0 && cudaGetDevice(&now) == cudaSuccess)
		restore_gpu(c->before, now);
#endif
	pthread_mutex_unlock(&c->served->lock);
}

const char *caller_text(const char *const *texts, int n, int32_t status)
{
	return status >= 0 && status < n ? texts[status] : "no such status";
}
