/* gemm_library.h: cuBLASLt as one device has it */
#ifndef OPS_CUDA_GEMM_LIBRARY_H
#define OPS_CUDA_GEMM_LIBRARY_H

#include <cublasLt.h>

#include "base/error.h"
#include "device/device.h"

// end the program when a call to cuBLASLt fails
#define CUBLAS(call) cublas_expect((call), #call, __FILE__, __LINE__)

static inline void cublas_expect(cublasStatus_t status, const char *call,
	const char *file, int line)
{
	if (status != CUBLAS_STATUS_SUCCESS)
		die("%s:%d: %s: %s", file, line, call, cublasLtGetStatusString(status));
}

static inline void set_preference(cublasLtMatmulPreference_t preference,
	cublasLtMatmulPreferenceAttributes_t what, const void *value, size_t nbytes)
{
	CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, what, value, nbytes));
}

static inline void destroy_descriptions(cublasLtMatmulDesc_t operation,
	cublasLtMatrixLayout_t left, cublasLtMatrixLayout_t right,
	cublasLtMatrixLayout_t result)
{
	CUBLAS(cublasLtMatmulDescDestroy(operation));
	CUBLAS(cublasLtMatrixLayoutDestroy(left));
	CUBLAS(cublasLtMatrixLayoutDestroy(right));
	CUBLAS(cublasLtMatrixLayoutDestroy(result));
}

/* how parts of a sum may be added: in a fixed order, in fp32 */
#define GEMM_REDUCTION ((uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)

typedef struct GemmLibrary {
	cublasLtHandle_t handle;
	void *workspace;                /* GEMM_WORKSPACE bytes */
} GemmLibrary;

GemmLibrary cuda_gemm_library(Device *d);

#endif
