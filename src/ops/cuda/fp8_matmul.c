/* fp8_matmul.c: matmuls in FP8 through cuBLASLt */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/gemm_library.h"
#include "ops/cuda/launch_context.h"
#include "ops/fp8.h"

// name what older versions of cuBLASLt lack
#if CUBLAS_VERSION < 120900
enum { MODE_A = 31, MODE_B = 32, OUTER_VEC = 3, VEC128 = 4, BLK128 = 5 };
#else
enum { MODE_A = CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
	MODE_B = CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
	OUTER_VEC = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
	VEC128 = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
	BLK128 = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F };
#endif

// keep matmuls in FP8
/* all fields are of one type, so that keys can be compared as bytes */
typedef struct Fp8Key {
	size_t m, n, k, type_a, type_b, layout_a, layout_b, output;
	size_t adds, sms;               /* to C? multiprocessors; 0: all */
} Fp8Key;

typedef struct Fp8Gemm {
	Fp8Key key;
	cublasLtMatmulDesc_t operation;
	cublasLtMatrixLayout_t left, right, result;     /* of B, A, C */
	cublasLtMatmulAlgo_t algorithm;
	bool found;
} Fp8Gemm;

typedef struct Fp8Gemms {
	Fp8Gemm *gemms;
	size_t n, fallbacks;
} Fp8Gemms;

static void close_gemms(Device *d, void *kept)
{
	Fp8Gemms *g = kept;
	for (size_t i = 0; i < g->n; i++) {
		const Fp8Gemm *each = &g->gemms[i];
		destroy_descriptions(each->operation, each->left, each->right,
			each->result);
	}
	free(g->gemms);
}

static Fp8Gemms *gemms_of(Device *d)
{
	return device_keep(d, sizeof(Fp8Gemms), close_gemms);
}

size_t cuda_fp8_fallbacks(Device *d)
{
	return gemms_of(d)->fallbacks;
}

// describe a matmul in FP8
static cublasLtMatrixLayout_t layout(size_t type, size_t rows, size_t columns)
{
	cublasLtMatrixLayout_t made;
	cudaDataType_t stored = type == E4M3 ? CUDA_R_8F_E4M3 : type == E5M2
		? CUDA_R_8F_E5M2 : type == BF16 ? CUDA_R_16BF : type == FP16
		? CUDA_R_16F : CUDA_R_32F;
	CUBLAS(cublasLtMatrixLayoutCreate(&made, stored, rows, columns,
		(int64_t)rows));
	return made;
}

/* false: this version of the library has no such mode */
static bool set_mode(cublasLtMatmulDesc_t operation, int which, size_t layout)
{
	int32_t mode = layout == FP8_ROWS ? OUTER_VEC : layout == FP8_BLOCKS
		? BLK128 : VEC128;
	return layout == FP8_ONE || cublasLtMatmulDescSetAttribute(operation,
		(cublasLtMatmulDescAttributes_t)which, &mode, sizeof mode)
		== CUBLAS_STATUS_SUCCESS;
}

static void set_scales(cublasLtMatmulDesc_t operation, const Fp8Matrix *A,
	const Fp8Matrix *B)
{
	CUBLAS(cublasLtMatmulDescSetAttribute(operation,
		CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &B->scale.at, sizeof(void *)));
	CUBLAS(cublasLtMatmulDescSetAttribute(operation,
		CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &A->scale.at, sizeof(void *)));
}

/* false: the library has no such matmul */
static bool describe(Fp8Gemm *g)
{
	const Fp8Key *p = &g->key;
	const cublasOperation_t transpose = CUBLAS_OP_T;
	const int32_t sms = (int32_t)p->sms;
	CUBLAS(cublasLtMatmulDescCreate(&g->operation, CUBLAS_COMPUTE_32F,
		CUDA_R_32F));
	CUBLAS(cublasLtMatmulDescSetAttribute(g->operation,
		CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose));
	CUBLAS(cublasLtMatmulDescSetAttribute(g->operation,
		CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &sms, sizeof sms));
	g->left = layout(p->type_b, p->k, p->n);
	g->right = layout(p->type_a, p->k, p->m);
	g->result = layout(p->output, p->n, p->m);
	return set_mode(g->operation, MODE_A, p->layout_b)
		&& set_mode(g->operation, MODE_B, p->layout_a);
}

// find a matmul in FP8
static void ask(GemmLibrary library, Fp8Gemm *g)
{
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t result;
	const uint32_t reduction = GEMM_REDUCTION;
	const uint64_t workspace = GEMM_WORKSPACE;
	int n = 0;
	CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
	set_preference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
		&reduction, 4);
	set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
		&workspace, 8);
	g->found = cublasLtMatmulAlgoGetHeuristic(library.handle, g->operation,
		g->left, g->right, g->result, g->result, preference, 1, &result, &n)
		== CUBLAS_STATUS_SUCCESS && n > 0
		&& result.state == CUBLAS_STATUS_SUCCESS;
	if (g->found)
		g->algorithm = result.algo;
	CUBLAS(cublasLtMatmulPreferenceDestroy(preference));
}

static Fp8Gemm *find(Device *d, Fp8Gemms *all, Fp8Key key, const Fp8Matrix *A,
	const Fp8Matrix *B)
{
	for (size_t i = 0; i < all->n; i++)
		if (memcmp(&all->gemms[i].key, &key, sizeof key) == 0)
			return &all->gemms[i];
	all->gemms = grow(all->gemms, all->n, sizeof *all->gemms);
	Fp8Gemm *g = &all->gemms[all->n++];
	*g = (Fp8Gemm){ .key = key };
	bool known = describe(g);
	set_scales(g->operation, A, B);
	if (known && key.k % 16 == 0 && key.n % 16 == 0)
		ask(cuda_gemm_library(d), g);
	return g;
}

// multiply in FP8 by way of fp32
static void multiply_in_fp32(Device *d, Array C, Fp8Matrix A, Fp8Matrix B,
	double beta)
{
	Array a = array_new(d, A.rows * A.k, FP32, MEM_TEMPORARY, "fp8 numbers"),
		b = array_new(d, B.rows * B.k, FP32, MEM_TEMPORARY, "fp8 numbers");
	cuda_fp8_numbers(d, a, A);
	cuda_fp8_numbers(d, b, B);
	cuda_matmul(d, C, a, b, (Matmul){ .m = A.rows, .n = B.rows, .k = A.k,
		.trans_b = true, .lda = A.k, .ldb = B.k, .ldc = B.rows, .alpha = 1,
		.beta = beta });
	device_free(d, a.at);
	device_free(d, b.at);
}

// multiply in FP8
void cuda_fp8_matmul(Device *d, Array C, Fp8Matrix A, Fp8Matrix B, double beta)
{
	Fp8Gemms *all = gemms_of(d);
	Fp8Gemm *g = find(d, all, (Fp8Key){ .m = A.rows, .n = B.rows, .k = A.k,
		.type_a = A.codes.type, .type_b = B.codes.type, .layout_a = A.layout,
		.layout_b = B.layout, .output = C.type, .adds = beta != 0,
		.sms = d->spare_sms > 0 ? (size_t)cuda_multiprocessors(d) : 0 }, &A, &B);
	const float one = 1, add = (float)beta;
	assert(A.k == B.k);
	if (!g->found || (uintptr_t)C.at % 16) {
		all->fallbacks++;
		multiply_in_fp32(d, C, A, B, beta);
		return;
	}
	GemmLibrary library = cuda_gemm_library(d);
	set_scales(g->operation, &A, &B);
	CUBLAS(cublasLtMatmul(library.handle, g->operation, &one, B.codes.at,
		g->left, A.codes.at, g->right, &add, C.at, g->result, C.at, g->result,
		&g->algorithm, library.workspace, GEMM_WORKSPACE, cuda_stream(d)));
}
