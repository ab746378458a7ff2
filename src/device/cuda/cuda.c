#define _GNU_SOURCE
#include "device/cuda/cuda.h"

#include <assert.h>
#include <cublasLt.h>
#include <nvtx3/nvToolsExt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static struct {
	Device *device;                     /* NULL while none is open */
	cudaStream_t stream;
	cudaEvent_t events[NEVENTS], order;
	bool capturing;
	void (*release[8])(void);
	int nrelease;
} gpu;

void cuda_expect(cudaError_t error, const char *call, const char *file,
	int line)
{
	if (error != cudaSuccess)
		die("%s:%d: %s: %s (%s)", file, line, call, cudaGetErrorString(error),
			cudaGetErrorName(error));
}
static const char *cuda_text(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
static const char *cuda_text(const char *format, ...)
{
	static char texts[2][256];
	static int slot;
	char *text = texts[slot ^= 1];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof *texts, format, arguments);
	va_end(arguments);
	return text;
}

const char *cuda_missing(void)
{
	int driver = 0, runtime = 0, count = 0;
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	if (driver == 0)
		return "no NVIDIA driver is loaded";
	cudaError_t error = cudaGetDeviceCount(&count);
	if (error == cudaErrorInsufficientDriver)
		return cuda_text("the driver knows CUDA %d.%d, this build needs %d.%d",
			driver / 1000, driver % 1000 / 10, runtime / 1000,
			runtime % 1000 / 10);
	if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
		return "the driver shows no GPU (see CUDA_VISIBLE_DEVICES)";
	if (error == cudaSuccess)
		error = cuda_probe();
	if (error == cudaSuccess)
		return NULL;
	cudaGetLastError();                   /* it has been dealt with */
	if (error == cudaErrorNoKernelImageForDevice
		|| error == cudaErrorInvalidDeviceFunction
		|| error == cudaErrorUnsupportedPtxVersion) {
		int major = 0, minor = 0;
		cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
		cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
		return cuda_text("this build has kernels for %s, the GPU is sm_%d%d: "
			"make clean, then make ARCH=sm_%d%d%s", CUDA_ARCH_BUILT,
			major, minor, major, minor, major == 9 && minor == 0 ? "a" : "");
	}
	return cuda_text("CUDA fails: %s", cudaGetErrorString(error));
}
static const char *cuda_describe(void)
{
	struct cudaDeviceProp p;
	CUDA(cudaGetDeviceProperties(&p, 0));
	return cuda_text("%s, sm_%d%d, %d SMs", p.name, p.major, p.minor,
		p.multiProcessorCount);
}

/* " (580.95.05)", or nothing: the first word like a version in the file */
static void read_driver_version(char *text, size_t size)
{
	char word[40];
	int major, minor;
	FILE *f = fopen("/proc/driver/nvidia/version", "r");
	while (f && fscanf(f, "%39s", word) == 1)
		if (sscanf(word, "%d.%d", &major, &minor) == 2) {
			snprintf(text, size, " (%s)", word);
			break;
		}
	if (f)
		fclose(f);
}

static const char *cuda_libraries(void)
{
	int runtime, driver;
	size_t blas = cublasLtGetVersion();
	char exact[48] = "";
	CUDA(cudaRuntimeGetVersion(&runtime));
	CUDA(cudaDriverGetVersion(&driver));
	read_driver_version(exact, sizeof exact);
	return cuda_text("CUDA runtime %d.%d, driver %d.%d%s, cuBLASLt %zu.%zu.%zu",
		runtime / 1000, runtime % 1000 / 10, driver / 1000, driver % 1000 / 10,
		exact, blas / 10000, blas / 100 % 100, blas % 100);
}

static size_t cuda_memory(void)
{
	size_t available, total;
	CUDA(cudaMemGetInfo(&available, &total));
	return total;
}

int cuda_multiprocessors(void)
{
	static int count;
	if (count == 0)
		CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
	return count;
}
static void cuda_open(Device *device)
{
	assert(gpu.device == NULL && "one GPU is open at a time");
	gpu.device = device;
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking));
}

void cuda_at_close(void (*release)(void))
{
	assert(gpu.nrelease < (int)(sizeof gpu.release / sizeof *gpu.release));
	gpu.release[gpu.nrelease++] = release;
}

static void cuda_close(void)
{
	assert(!gpu.capturing);
	CUDA(cudaStreamSynchronize(gpu.stream));
	while (gpu.nrelease > 0)
		gpu.release[--gpu.nrelease]();
	for (int i = 0; i < NEVENTS; i++)
		if (gpu.events[i])
			CUDA(cudaEventDestroy(gpu.events[i]));
	memset(gpu.events, 0, sizeof gpu.events);
	if (gpu.order)
		CUDA(cudaEventDestroy(gpu.order));
	gpu.order = NULL;
	CUDA(cudaStreamDestroy(gpu.stream));
	gpu.device = NULL;
}

Device *cuda_device(void)
{
	assert(gpu.device && "a GPU is open");
	return gpu.device;
}

cudaStream_t cuda_stream(void)
{
	assert(gpu.device && "a GPU is open");
	return gpu.stream;
}

cudaStream_t cuda_use_stream(cudaStream_t stream)
{
	cudaStream_t before = cuda_stream();
	if (gpu.order == NULL)
		CUDA(cudaEventCreateWithFlags(&gpu.order, cudaEventDisableTiming));
	CUDA(cudaEventRecord(gpu.order, before));
	CUDA(cudaStreamWaitEvent(stream, gpu.order, 0));
	gpu.stream = stream;
	return before;
}
static size_t cuda_available(void)
{
	size_t available, total, reserve = (size_t)512 << 20;
	CUDA(cudaMemGetInfo(&available, &total));
	return available - (reserve < available / 8 ? reserve : available / 8);
}

static void *cuda_alloc(size_t nbytes)
{
	void *p = NULL;
	cudaError_t error = cudaMalloc(&p, nbytes);
	if (error == cudaErrorMemoryAllocation) {
		cudaGetLastError();               /* the caller deals with it */
		return NULL;
	}
	cuda_expect(error, "cudaMalloc", __FILE__, __LINE__);
	return p;
}

static void cuda_free(void *p)
{
	CUDA(cudaFree(p));
}

static void cuda_synchronize(void)
{
	assert(!gpu.capturing && "recorded work has no results to wait for");
	CUDA(cudaStreamSynchronize(gpu.stream));
}

static void cuda_copy(void *to, const void *from, size_t nbytes)
{
	assert(!gpu.capturing && "a recorded copy would read the host later");
	CUDA(cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDefault, gpu.stream));
	CUDA(cudaStreamSynchronize(gpu.stream));
}
void *cuda_scratch(size_t nbytes, const char *what)
{
	assert(gpu.device && "a GPU is open");
	return device_alloc(gpu.device, nbytes, MEM_TEMPORARY, what);
}

void cuda_release(void *p)
{
	device_free(gpu.device, p);
}
static void cuda_range(const char *name)
{
	if (name)
		nvtxRangePushA(name);
	else
		nvtxRangePop();
}

static void cuda_event_record(int which)
{
	assert(0 <= which && which < NEVENTS);
	if (gpu.events[which] == NULL)
		CUDA(cudaEventCreate(&gpu.events[which]));
	CUDA(cudaEventRecordWithFlags(gpu.events[which], gpu.stream,
		gpu.capturing ? cudaEventRecordExternal : cudaEventRecordDefault));
}

static double cuda_event_elapsed_ms(int from, int to)
{
	float ms;
	CUDA(cudaEventSynchronize(gpu.events[to]));
	CUDA(cudaEventElapsedTime(&ms, gpu.events[from], gpu.events[to]));
	return ms;
}
static void cuda_graph_begin(void)
{
	assert(!gpu.capturing);
	CUDA(cudaStreamBeginCapture(gpu.stream, cudaStreamCaptureModeRelaxed));
	gpu.capturing = true;
}

static int count_kernels(cudaGraph_t graph)
{
	size_t n = 0;
	int kernels = 0;
	CUDA(cudaGraphGetNodes(graph, NULL, &n));
	cudaGraphNode_t *nodes = need(calloc(n + 1, sizeof *nodes));
	CUDA(cudaGraphGetNodes(graph, nodes, &n));
	for (size_t i = 0; i < n; i++) {
		enum cudaGraphNodeType type;
		CUDA(cudaGraphNodeGetType(nodes[i], &type));
		kernels += type == cudaGraphNodeTypeKernel;
		if (type == cudaGraphNodeTypeGraph) {
			cudaGraph_t child;
			CUDA(cudaGraphChildGraphNodeGetGraph(nodes[i], &child));
			kernels += count_kernels(child);
		}
	}
	free(nodes);
	return kernels;
}

static void *cuda_graph_end(int *kernels)
{
	cudaGraph_t graph;
	cudaGraphExec_t ready;
	assert(gpu.capturing);
	gpu.capturing = false;
	CUDA(cudaStreamEndCapture(gpu.stream, &graph));
	*kernels = count_kernels(graph);
	CUDA(cudaGraphInstantiate(&ready, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphUpload(ready, gpu.stream));
	return ready;
}

static void cuda_graph_launch(void *graph)
{
	CUDA(cudaGraphLaunch(graph, gpu.stream));
}

static void cuda_graph_destroy(void *graph)
{
	CUDA(cudaStreamSynchronize(gpu.stream));
	CUDA(cudaGraphExecDestroy(graph));
}

const Backend cuda_backend = {
	.name = "cuda", .describe = cuda_describe, .libraries = cuda_libraries,
	.memory = cuda_memory, .open = cuda_open, .close = cuda_close,
	.available = cuda_available, .width = type_size,
	.alloc = cuda_alloc, .free = cuda_free, .copy = cuda_copy,
	.synchronize = cuda_synchronize, .event_record = cuda_event_record,
	.range = cuda_range,
	.event_elapsed_ms = cuda_event_elapsed_ms, .graph_begin = cuda_graph_begin,
	.graph_end = cuda_graph_end, .graph_launch = cuda_graph_launch,
	.graph_destroy = cuda_graph_destroy,
};
