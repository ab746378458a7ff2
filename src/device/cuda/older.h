/* older.h: names of CUDA 13.0 and NCCL 2.27, for CUDA from 12.4 and NCCL from
 * 2.20 on; the build has it included before all else */
#ifndef DEVICE_CUDA_OLDER_H
#define DEVICE_CUDA_OLDER_H

#include <cuda_runtime.h>

#if CUDART_VERSION < 13000
#define CUpti_ActivityKernel10 CUpti_ActivityKernel9
#endif
#if CUDART_VERSION < 12050
#define cudaGetDriverEntryPointByVersion(name, at, version, flags, found) \
	cudaGetDriverEntryPoint(name, at, flags, found)
#endif
#if CUDART_VERSION < 12080
#define CUpti_ActivityMemcpy6 CUpti_ActivityMemcpy5

// load and launch kernels by the driver
#include <cudaTypedefs.h>

typedef CUlibrary cudaLibrary_t;

static inline void *driver_call(const char *name)
{
	void *function = NULL;
	enum cudaDriverEntryPointQueryResult found;
	if (cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found)
		!= cudaSuccess)
		return NULL;
	return function;
}

/* the result of a function of the driver, as the runtime would report it */
#define BY_DRIVER(type, name, ...) \
	type call = (type)driver_call(name); \
	return call ? (cudaError_t)call(__VA_ARGS__) \
		: cudaErrorCallRequiresNewerDriver

static inline cudaError_t cudaLibraryLoadData(cudaLibrary_t *library,
	const void *code, void *jit, void *jit_values, unsigned njit,
	void *options, void *values, unsigned noptions)
{
	BY_DRIVER(PFN_cuLibraryLoadData_v12000, "cuLibraryLoadData", library, code,
		(CUjit_option *)jit, (void **)jit_values, njit,
		(CUlibraryOption *)options, (void **)values, noptions);
}

static inline cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel,
	cudaLibrary_t library, const char *name)
{
	BY_DRIVER(PFN_cuLibraryGetKernel_v12000, "cuLibraryGetKernel", kernel,
		library, name);
}

static inline cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	BY_DRIVER(PFN_cuLibraryUnload_v12000, "cuLibraryUnload", library);
}

static inline cudaError_t launch_loaded(const void *kernel, dim3 grid,
	dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream)
{
	BY_DRIVER(PFN_cuLaunchKernel_v4000, "cuLaunchKernel", (CUfunction)kernel,
		grid.x, grid.y, grid.z, block.x, block.y, block.z,
		(unsigned)shared_bytes, stream, arguments, NULL);
}
#define cudaLaunchKernel(...) launch_loaded(__VA_ARGS__)
#endif
#ifdef HAVE_NCCL
#include <nccl.h>
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 0)
#define ncclBfloat16 ((ncclDataType_t)9)

// give NCCL windows that are none
#include <stdio.h>

typedef struct NoWindow *ncclWindow_t;
enum { NCCL_WIN_COLL_SYMMETRIC = 1 };

static inline ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *at,
	size_t nbytes, ncclWindow_t *window, int flags)
{
	static int said;
	int rank = 0;
	ncclResult_t result = ncclCommUserRank(comm, &rank);
	*window = NULL;
	if (rank == 0 && !said++)
		fprintf(stderr, "NCCL %d.%d has no windows (2.27 and newer have): "
			"transport 'symmetric' does as 'nccl'\n", NCCL_MAJOR, NCCL_MINOR);
	return result;
}

static inline ncclResult_t ncclCommWindowDeregister(ncclComm_t comm,
	ncclWindow_t window)
{
	return ncclInvalidUsage;            /* there is none */
}
#endif
#endif

#endif
