#define _GNU_SOURCE
#include "jit/compiler.h"

#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "jit/cuda/nvrtc.h"
#include "jit/source.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/launch_context.h"

// compile CUDA
static void check_nvrtc(nvrtcResult result, const char *call)
{
	if (result != NVRTC_SUCCESS)
		die("%s: %s", call, nvrtcGetErrorString(result));
}
#define NVRTC(call) check_nvrtc((call), #call)

static const char exact[] = "--fmad=false", standard[] = "--std=c++17";

Bytes nvrtc_compile(const char *source, const char *architecture,
	char **complaint)
{
	char arch[32];
	const char *const options[] = { arch, exact, standard };
	nvrtcProgram program;
	Bytes b = { NULL, 0 };
	size_t n = 0;
	snprintf(arch, sizeof arch, "--gpu-architecture=%s", architecture);
	NVRTC(nvrtcCreateProgram(&program, source, "kernel", 0, NULL, NULL));
	nvrtcResult result = nvrtcCompileProgram(program, 3, options);
	if (result == NVRTC_SUCCESS) {
		NVRTC(nvrtcGetCUBINSize(program, &b.n));
		b.at = need(malloc(b.n));
		NVRTC(nvrtcGetCUBIN(program, (char *)b.at));
	} else {
		NVRTC(nvrtcGetProgramLogSize(program, &n));
		*complaint = need(calloc(n + 1, 1));
		NVRTC(nvrtcGetProgramLog(program, *complaint));
	}
	nvrtcDestroyProgram(&program);
	return b;
}

// compile for the architecture of the device
static void architecture_of(const Device *d, char name[16])
{
	ChipFacts chip = cuda_chip(d->state);
	snprintf(name, 16, "sm_%d%d", chip.major, chip.minor);
}

static char *nvrtc_identify(const Device *d, const char **why)
{
	int major, minor;
	char name[16], *identity;
	NVRTC(nvrtcVersion(&major, &minor));
	architecture_of(d, name);
	if (asprintf(&identity, "NVRTC %d.%d; %s %s; %s", major, minor, exact,
		standard, name) < 0)
		die("out of host memory");
	return identity;
}

static Bytes nvrtc_for_device(const Device *d, const char *source,
	char **complaint)
{
	char name[16];
	architecture_of(d, name);
	return nvrtc_compile(source, name, complaint);
}

// load machine code
typedef struct CudaKernel {
	cudaLibrary_t library;
	cudaKernel_t kernel;
} CudaKernel;

static void *nvrtc_load(Bytes b)
{
	CudaKernel l;
	if (cudaLibraryLoadData(&l.library, b.at, NULL, NULL, 0, NULL, NULL, 0)
		!= cudaSuccess) {
		cudaGetLastError();             /* the caller compiles again */
		return NULL;
	}
	CUDA(cudaLibraryGetKernel(&l.kernel, l.library, "fused"));
	CudaKernel *kept = need(malloc(sizeof *kept));
	*kept = l;
	return kept;
}

static void nvrtc_unload(void *kernel)
{
	CUDA(cudaLibraryUnload(((CudaKernel *)kernel)->library));
	free(kernel);
}

// launch a kernel
static dim3 launch_grid(const KernelPlan *p, dim3 *block)
{
	unsigned T = p->C ? row_threads(p->C) : 256;
	bool many = p->shape != FLAT && T == 32 && !p->columns;
	*block = (dim3){ T, many ? 8 : 1, 1 };
	size_t blocks = p->shape == FLAT ? (p->g.n + 1023) / 1024
		: p->columns ? row_slabs(p->rows, p->C)
		: many ? (p->rows + 7) / 8 : p->rows;
	return (dim3){ (unsigned)blocks, 1, 1 };
}

static void nvrtc_launch(Device *d, void *kernel, const KernelPlan *p,
	void *const *at, const double *numbers)
{
	void *pointers[MOST_POINTERS], *arguments[MOST_POINTERS + MOST_NODES + 1];
	float narrow[MOST_NODES];
	double unused[MOST_NODES];
	int n = 0, npointers = plan_pointers(p, pointers),
		nnumbers = plan_numbers(p, unused);
	size_t count = p->shape == FLAT ? p->g.n : p->rows;
	unsigned brief = (unsigned)count;
	dim3 block, grid = launch_grid(p, &block);
	arguments[n++] = source_has_short_index(p) ? (void *)&brief
		: (void *)&count;
	for (int k = 0; k < npointers; k++)
		arguments[n++] = (void *)&at[k];
	for (int k = 0; k < nnumbers; k++) {
		narrow[k] = (float)numbers[k];
		arguments[n++] = &narrow[k];
	}
	CUDA(cudaLaunchKernel((const void *)((CudaKernel *)kernel)->kernel, grid,
		block,
		arguments, 0, cuda_stream(d)));
}

static void nvrtc_add_slabs(Device *d, Array y, void *partial, size_t slabs,
	size_t C)
{
	cuda_sum_rows(d, y, 1, partial, slabs, C);
}

const Compiler nvrtc_compiler = { nvrtc_identify, source_cuda,
	nvrtc_for_device, nvrtc_load, nvrtc_unload, nvrtc_launch, nvrtc_add_slabs };
