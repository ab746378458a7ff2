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

// define an open GPU
/* the number of events that a queue keeps: as many of the last ones can be
 * waited for exactly */
enum { NEVENTS = 1024 };

typedef struct Gpu {
	int ordinal;
	ChipFacts chip;
	cudaStream_t stream[NQUEUES];
	/* event n of a queue is in entry n % NEVENTS */
	cudaEvent_t events[NQUEUES][NEVENTS];
	uint64_t nevents[NQUEUES];
	cudaEvent_t stamps[NSTAMPS];
	bool capturing;
} Gpu;

// end the program when a call to CUDA fails
void cuda_expect(cudaError_t error, const char *call, const char *file,
	int line)
{
	if (error != cudaSuccess)
		die("%s:%d: %s: %s (%s)", file, line, call, cudaGetErrorString(error),
			cudaGetErrorName(error));
}

// find out why there is no GPU to use
static const char *cuda_text(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

// print a text into memory that stays
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

static const char *cuda_missing(int ordinal)
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
	if (error == cudaSuccess && ordinal >= count)
		return cuda_text("the driver shows %d (see CUDA_VISIBLE_DEVICES)",
			count);
	if (error == cudaSuccess)
		error = cudaSetDevice(ordinal);
	if (error == cudaSuccess)
		error = cuda_probe();
	if (error == cudaSuccess)
		return NULL;
	cudaGetLastError();                   /* it has been dealt with */
	// if the kernels are not for this GPU, say what to build
	if (error == cudaErrorNoKernelImageForDevice
		|| error == cudaErrorInvalidDeviceFunction
		|| error == cudaErrorUnsupportedPtxVersion) {
		int major = 0, minor = 0;
		cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
			ordinal);
		cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor,
			ordinal);
		return cuda_text("this build has kernels for %s, the GPU is sm_%d%d: "
			"make clean, then make ARCH=sm_%d%d%s", CUDA_ARCH_BUILT,
			major, minor, major, minor, major == 9 && minor == 0 ? "a" : "");
	}
	return cuda_text("CUDA fails: %s", cudaGetErrorString(error));
}

// find the stream of a queue
static Gpu *make_current(const void *state)
{
	CUDA(cudaSetDevice(((const Gpu *)state)->ordinal));
	return (Gpu *)state;
}

cudaStream_t cuda_queue(const void *state, Queue queue)
{
	return make_current(state)->stream[queue];
}

// describe the GPU and the libraries
static const char *cuda_describe(void *state)
{
	struct cudaDeviceProp p;
	CUDA(cudaGetDeviceProperties(&p, ((Gpu *)state)->ordinal));
	return cuda_text("%s, sm_%d%d, %d SMs", p.name, p.major, p.minor,
		p.multiProcessorCount);
}

// read the version of the driver
/* writes " (580.95.05)", or nothing: the first word of the file that looks like
 * a version */
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

static const char *cuda_libraries(void *state)
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

// describe the GPU and the libraries
static const char *cuda_bus(void *state)
{
	char bus[32];
	CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, ((Gpu *)state)->ordinal));
	return cuda_text("%s", bus);
}

static size_t cuda_memory(void *state)
{
	size_t available, total;
	make_current(state);
	CUDA(cudaMemGetInfo(&available, &total));
	return total;
}

ChipFacts cuda_chip(const void *state)
{
	return ((const Gpu *)state)->chip;
}

// open and close the GPU
static void *cuda_open(int ordinal)
{
	Gpu *g = need(calloc(1, sizeof *g));
	int priority[NQUEUES];
	g->ordinal = ordinal;
	make_current(g);
	CUDA(cudaDeviceGetStreamPriorityRange(&priority[COMPUTE], &priority[COMM]));
	for (int queue = 0; queue < NQUEUES; queue++)
		CUDA(cudaStreamCreateWithPriority(&g->stream[queue],
			cudaStreamNonBlocking, priority[queue]));
	CUDA(cudaDeviceGetAttribute(&g->chip.major,
		cudaDevAttrComputeCapabilityMajor, ordinal));
	CUDA(cudaDeviceGetAttribute(&g->chip.minor,
		cudaDevAttrComputeCapabilityMinor, ordinal));
	CUDA(cudaDeviceGetAttribute(&g->chip.multiprocessors,
		cudaDevAttrMultiProcessorCount, ordinal));
	return g;
}

static void destroy_events(cudaEvent_t *events, int n)
{
	for (int i = 0; i < n; i++)
		if (events[i])
			CUDA(cudaEventDestroy(events[i]));
}

static void cuda_close(void *state)
{
	Gpu *g = make_current(state);
	assert(!g->capturing);
	for (int queue = 0; queue < NQUEUES; queue++) {
		CUDA(cudaStreamDestroy(g->stream[queue]));
		destroy_events(g->events[queue], NEVENTS);
	}
	destroy_events(g->stamps, NSTAMPS);
	free(g);
}

// allocate, free and copy on the GPU
static size_t cuda_available(void *state)
{
	size_t available, total, reserve = (size_t)512 << 20;
	make_current(state);
	CUDA(cudaMemGetInfo(&available, &total));
	return available - (reserve < available / 8 ? reserve : available / 8);
}

static void *cuda_alloc(void *state, size_t nbytes)
{
	void *p = NULL;
	make_current(state);
	cudaError_t error = cudaMalloc(&p, nbytes);
	if (error == cudaErrorMemoryAllocation) {
		cudaGetLastError();               /* the caller deals with it */
		return NULL;
	}
	cuda_expect(error, "cudaMalloc", __FILE__, __LINE__);
	return p;
}

static void cuda_free(void *state, void *p)
{
	make_current(state);
	CUDA(cudaFree(p));
}

static void *cuda_host_alloc(void *state, size_t nbytes)
{
	void *p = NULL;
	make_current(state);
	return cudaMallocHost(&p, nbytes) == cudaSuccess ? p : NULL;
}

static void cuda_host_free(void *state, void *p)
{
	make_current(state);
	CUDA(cudaFreeHost(p));
}

// copy between host and GPU, and wait
static void cuda_synchronize(void *state, Queue queue)
{
	assert(!((Gpu *)state)->capturing && "recorded work has no results yet");
	CUDA(cudaStreamSynchronize(cuda_queue(state, queue)));
}

static void cuda_copy(void *state, Queue queue, void *to, const void *from,
	size_t nbytes)
{
	CUDA(cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDefault,
		cuda_queue(state, queue)));
}

static void cuda_call(void *state, Queue queue, void (*work)(void *arg),
	void *arg)
{
	CUDA(cudaLaunchHostFunc(cuda_queue(state, queue), work, arg));
}

// order the streams
static cudaEvent_t *event_slot(Gpu *g, Queue queue, uint64_t n)
{
	return &g->events[queue][n % NEVENTS];
}

static uint64_t cuda_event(void *state, Queue queue)
{
	Gpu *g = make_current(state);
	cudaEvent_t *event = event_slot(g, queue, ++g->nevents[queue]);
	if (*event == NULL)
		CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
	CUDA(cudaEventRecord(*event, g->stream[queue]));
	return g->nevents[queue];
}

static void cuda_wait(void *state, Queue queue, Queue of, uint64_t n)
{
	Gpu *g = make_current(state);
	CUDA(cudaStreamWaitEvent(g->stream[queue], *event_slot(g, of, n), 0));
}

static bool cuda_reached(void *state, Queue of, uint64_t n)
{
	cudaError_t error = cudaEventQuery(*event_slot(make_current(state), of, n));
	if (error != cudaErrorNotReady)
		CUDA(error);
	return error == cudaSuccess;
}

cudaStream_t cuda_set_stream(void *state, cudaStream_t stream)
{
	Gpu *g = make_current(state);
	cudaStream_t before = g->stream[COMPUTE];
	g->stream[COMPUTE] = stream;
	return before;
}

void cuda_replace_stream(void *state, cudaStream_t stream)
{
	uint64_t n = cuda_event(state, COMPUTE);
	cuda_set_stream(state, stream);
	cuda_wait(state, COMPUTE, COMPUTE, n);
}

// stamp the time in a stream
static void cuda_range(void *state, const char *name)
{
	if (name)
		nvtxRangePushA(name);
	else
		nvtxRangePop();
}

static void cuda_stamp(void *state, Queue queue, int which)
{
	Gpu *g = make_current(state);
	if (g->stamps[which] == NULL)
		CUDA(cudaEventCreate(&g->stamps[which]));
	CUDA(cudaEventRecordWithFlags(g->stamps[which], g->stream[queue],
		g->capturing ? cudaEventRecordExternal : cudaEventRecordDefault));
}

static double cuda_stamped_ms(void *state, int from, int to)
{
	Gpu *g = make_current(state);
	float ms;
	CUDA(cudaEventSynchronize(g->stamps[to]));
	CUDA(cudaEventElapsedTime(&ms, g->stamps[from], g->stamps[to]));
	return ms;
}

// capture work as a graph, and launch it
static void cuda_graph_begin(void *state)
{
	Gpu *g = make_current(state);
	assert(!g->capturing);
	CUDA(cudaStreamBeginCapture(g->stream[COMPUTE],
		cudaStreamCaptureModeRelaxed));
	g->capturing = true;
}

// count the kernels of a graph
static int count_kernels(cudaGraph_t graph)
{
	size_t n = 0;
	int kernels = 0;
	CUDA(cudaGraphGetNodes(graph, NULL, &n));
	cudaGraphNode_t *nodes = need(calloc(n + 1, sizeof *nodes));
	if (n > 0)
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

static void *cuda_graph_end(void *state, int *kernels)
{
	Gpu *g = make_current(state);
	cudaGraph_t graph;
	cudaGraphExec_t ready = NULL;
	size_t nodes = 0;
	assert(g->capturing);
	g->capturing = false;
	CUDA(cudaStreamEndCapture(g->stream[COMPUTE], &graph));
	CUDA(cudaGraphGetNodes(graph, NULL, &nodes));
	*kernels = count_kernels(graph);
	if (nodes > 0)
		CUDA(cudaGraphInstantiate(&ready, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	if (nodes == 0)
		return NULL;
	CUDA(cudaGraphUpload(ready, g->stream[COMPUTE]));
	return ready;
}

// capture work as a graph, and launch it
static void cuda_graph_launch(void *state, void *graph)
{
	CUDA(cudaGraphLaunch(graph, cuda_queue(state, COMPUTE)));
}

static void cuda_graph_destroy(void *state, void *graph)
{
	cuda_synchronize(state, COMPUTE);
	CUDA(cudaGraphExecDestroy(graph));
}

// list the functions of the CUDA backend
const Backend cuda_backend = {
	.name = "cuda", .why_missing = cuda_missing, .open = cuda_open,
	.close = cuda_close, .describe = cuda_describe,
	.libraries = cuda_libraries, .bus = cuda_bus, .memory = cuda_memory,
	.range = cuda_range, .available = cuda_available, .width = type_size,
	.alloc = cuda_alloc, .free = cuda_free, .host_alloc = cuda_host_alloc,
	.host_free = cuda_host_free, .copy = cuda_copy, .call = cuda_call,
	.synchronize = cuda_synchronize, .event = cuda_event,
	.wait = cuda_wait, .reached = cuda_reached, .stamp = cuda_stamp,
	.stamped_ms = cuda_stamped_ms, .graph_begin = cuda_graph_begin,
	.graph_end = cuda_graph_end, .graph_launch = cuda_graph_launch,
	.graph_destroy = cuda_graph_destroy,
};
