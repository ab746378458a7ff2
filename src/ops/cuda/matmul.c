#define _GNU_SOURCE
/* matmul.c: matmuls through cuBLASLt */
#include "ops/cuda/cuda.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/stats.h"
#include "ops/cuda/gemm_library.h"
#include "ops/cuda/launch_context.h"
#include "ops/gemm_choices.h"

// describe a matmul and how it is computed
/* all fields are of one type, so that there is no padding and keys can be
 * compared as bytes */
typedef struct GemmKey {
	size_t m, n, k, trans_a, trans_b, lda, ldb, ldc;
	/* matrices in one call, and elements from one to the next */
	size_t count, step_a, step_b, step_c;
	size_t align_a, align_b, align_c;       /* bytes; holds for every matrix */
	size_t input, output;                   /* Types */
	size_t workspace;                       /* bytes */
	size_t sms;                            /* multiprocessors; 0: all */
	size_t adds;                            /* to C? else it overwrites C */
} GemmKey;

typedef struct PreparedGemm {
	GemmKey key;
	cublasLtMatmulDesc_t operation;
	cublasLtMatrixLayout_t left, right, result;     /* of B, A, C */
	cublasLtMatmulAlgo_t algorithm;
	bool found;                             /* is there an algorithm? */
	struct Tuning *tuning;                  /* NULL: it has been chosen */
} PreparedGemm;

// keep what matmuls share: handle, algorithms, workspaces, side streams
/* proposals of one matmul, and rounds in which each of them is timed once */
enum { PROPOSALS = 8, ROUNDS = 5 };

typedef struct SideStream {
	cudaStream_t stream;
	cudaEvent_t join;
	void *workspace;
} SideStream;

typedef struct GemmState {
	cublasLtHandle_t handle;            /* NULL until the first matmul */
	void *workspace;
	PreparedGemm *gemms;
	size_t ngemms, fallbacks;
	cudaEvent_t fork;                   /* NULL until the first loop */
	SideStream sides[GEMM_SIDES];
	cudaEvent_t before, after;          /* events around a call that is timed */
} GemmState;

static void close_library(Device *d, void *kept)
{
	GemmState *l = kept;
	for (size_t i = 0; i < l->ngemms; i++) {
		const PreparedGemm *each = &l->gemms[i];
		destroy_descriptions(each->operation, each->left, each->right,
			each->result);
		free(each->tuning);
	}
	free(l->gemms);
	CUDA(cudaEventDestroy(l->before));
	CUDA(cudaEventDestroy(l->after));
	for (size_t i = 0; l->fork && i < GEMM_SIDES; i++) {
		CUDA(cudaStreamDestroy(l->sides[i].stream));
		CUDA(cudaEventDestroy(l->sides[i].join));
		device_free(d, l->sides[i].workspace);
	}
	if (l->fork)
		CUDA(cudaEventDestroy(l->fork));
	CUBLAS(cublasLtDestroy(l->handle));
	device_free(d, l->workspace);
}

static GemmState *library_of(Device *d)
{
	GemmState *l = device_keep(d, sizeof *l, close_library);
	if (l->handle)
		return l;
	assert(type_size(TF32) == type_size(FP32) && "TF32 is stored as fp32");
	l->workspace = cuda_scratch(d, GEMM_WORKSPACE, "cuBLASLt workspace");
	cuda_stream(d);                     /* the handle is for this GPU */
	CUBLAS(cublasLtCreate(&l->handle));
	CUDA(cudaEventCreate(&l->before));
	CUDA(cudaEventCreate(&l->after));
	return l;
}

GemmLibrary cuda_gemm_library(Device *d)
{
	const GemmState *l = library_of(d);
	return (GemmLibrary){ l->handle, l->workspace };
}

size_t cuda_matmul_fallbacks(Device *d)
{
	return library_of(d)->fallbacks;
}

static void open_side_streams(Device *d, GemmState *l)
{
	if (l->fork)
		return;
	for (SideStream *side = l->sides; side < l->sides + GEMM_SIDES; side++) {
		side->workspace = cuda_scratch(d, GEMM_SIDE_WORKSPACE,
			"cuBLASLt workspace");
		CUDA(cudaStreamCreateWithFlags(&side->stream, cudaStreamNonBlocking));
		CUDA(cudaEventCreateWithFlags(&side->join, cudaEventDisableTiming));
	}
	CUDA(cudaEventCreateWithFlags(&l->fork, cudaEventDisableTiming));
}

// queue one matmul, or several side by side
/* queues the batch number o of the outer loop */
static void multiply(const GemmState *library, const PreparedGemm *gemm, Array C,
	Array A, Array B, const Matmul *s, size_t o, void *workspace,
	cudaStream_t stream)
{
	size_t in = type_size(A.type), out = type_size(C.type);
	const char *a = (const char *)A.at + o * s->step_a[0] * in;
	const char *b = (const char *)B.at + o * s->step_b[0] * in;
	char *c = (char *)C.at + o * s->step_c[0] * out;
	float alpha = (float)s->alpha, beta = (float)s->beta;
	CUBLAS(cublasLtMatmul(library->handle, gemm->operation, &alpha,
		b, gemm->left, a, gemm->right, &beta, c, gemm->result,
		c, gemm->result, &gemm->algorithm, workspace, gemm->key.workspace,
		stream));
}

static void multiply_side_by_side(Device *d, GemmState *library,
	const PreparedGemm *gemm, Array C, Array A, Array B, const Matmul *s)
{
	open_side_streams(d, library);
	size_t sides = s->outer < GEMM_SIDES ? s->outer : GEMM_SIDES;
	CUDA(cudaEventRecord(library->fork, cuda_stream(d)));
	for (size_t i = 0; i < sides; i++)
		CUDA(cudaStreamWaitEvent(library->sides[i].stream, library->fork, 0));
	for (size_t o = 0; o < s->outer; o++) {
		SideStream *side = &library->sides[o % GEMM_SIDES];
		multiply(library, gemm, C, A, B, s, o, side->workspace,
			side->stream);
	}
	for (size_t i = 0; i < sides; i++) {
		CUDA(cudaEventRecord(library->sides[i].join, library->sides[i].stream));
		CUDA(cudaStreamWaitEvent(cuda_stream(d), library->sides[i].join, 0));
	}
}

// take an algorithm that was chosen before
static_assert(sizeof(cublasLtMatmulAlgo_t) == GEMM_WORDS * sizeof(uint64_t),
	"a choice holds an algorithm");
static_assert(sizeof(GemmKey) == GEMM_NUMBERS * sizeof(uint64_t), "and a key");

static void use_choice(const GemmState *l, PreparedGemm *g,
	const GemmChoice *choice)
{
	const GemmKey *p = &g->key;
	cublasLtMatmulHeuristicResult_t checked;
	uint32_t scheme = 0;
	size_t written;
	memcpy(&g->algorithm, choice->word, sizeof g->algorithm);
	cublasStatus_t status = cublasLtMatmulAlgoCheck(l->handle, g->operation,
		g->left, g->right, g->result, g->result, &g->algorithm, &checked);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasLtMatmulAlgoConfigGetAttribute(&g->algorithm,
			CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme,
			&written);
	g->found = status == CUBLAS_STATUS_SUCCESS
		&& checked.workspaceSize <= p->workspace
		&& (scheme & ~GEMM_REDUCTION) == 0;
	if (!g->found)
		usage_error("the file of matmuls' algorithms has one for %zu x %zu x %zu "
			"that does not compute it (remove the file)", p->m, p->n, p->k);
}

// time the proposals of a matmul
/* n proposals; `tries` calls have been timed, round by round */
struct Tuning {
	int n, tries;
	cublasLtMatmulAlgo_t algorithm[PROPOSALS];
	double ms[PROPOSALS][ROUNDS];
};

static void keep_proposals(PreparedGemm *g,
	const cublasLtMatmulHeuristicResult_t *from,
	int n)
{
	struct Tuning *t = need(calloc(1, sizeof *t));
	for (int i = 0; i < n; i++)
		if (from[i].state == CUBLAS_STATUS_SUCCESS)
			t->algorithm[t->n++] = from[i].algo;
	g->tuning = t;
}

static void keep_fastest(GemmChoices *choices, PreparedGemm *g)
{
	const struct Tuning *t = g->tuning;
	GemmChoice choice;
	memcpy(choice.number, &g->key, sizeof choice.number);
	for (int i = 0; i < t->n; i++) {
		double ms = stats_of(t->ms[i] + 1, ROUNDS - 1).median;
		if (i == 0)
			choice.first_ms = choice.best_ms = ms;
		if (ms <= choice.best_ms) {
			choice.best_ms = ms;
			g->algorithm = t->algorithm[i];
		}
	}
	memcpy(choice.word, &g->algorithm, sizeof choice.word);
	gemm_choices_add(choices, &choice);
	free(g->tuning);
	g->tuning = NULL;
}

static void multiply_timed(Device *d, GemmState *l, PreparedGemm *g, Array C,
	Array A,
	Array B, const Matmul *s)
{
	struct Tuning *t = g->tuning;
	float ms;
	PreparedGemm tried = *g;
	tried.algorithm = t->algorithm[t->tries % t->n];
	CUDA(cudaEventRecord(l->before, cuda_stream(d)));
	multiply(l, &tried, C, A, B, s, 0, l->workspace, cuda_stream(d));
	CUDA(cudaEventRecord(l->after, cuda_stream(d)));
	CUDA(cudaEventSynchronize(l->after));
	CUDA(cudaEventElapsedTime(&ms, l->before, l->after));
	t->ms[t->tries % t->n][t->tries / t->n] = ms;
	if (++t->tries == t->n * ROUNDS)
		keep_fastest(d->gemms, g);
}

// set up a matmul
static cudaDataType_t stored_as(size_t type)
{
	assert(type == FP32 || type == TF32 || type == BF16 || type == FP16);
	return type == BF16 ? CUDA_R_16BF : type == FP16 ? CUDA_R_16F : CUDA_R_32F;
}

// lay out a matrix for the library
static cublasLtMatrixLayout_t layout(const GemmKey *p, size_t type, size_t rows,
	size_t columns, size_t ld, size_t step)
{
	cublasLtMatrixLayout_t made;
	int32_t count = (int32_t)p->count;
	int64_t distance = (int64_t)step;
	CUBLAS(cublasLtMatrixLayoutCreate(&made, stored_as(type), rows, columns,
		(int64_t)ld));
	CUBLAS(cublasLtMatrixLayoutSetAttribute(made,
		CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
	CUBLAS(cublasLtMatrixLayoutSetAttribute(made,
		CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &distance,
		sizeof distance));
	return made;
}

// ask for algorithms
/* up to `most`; several are kept to be timed */
static void ask_heuristic(const GemmState *library, PreparedGemm *gemm, int most)
{
	const GemmKey *p = &gemm->key;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t proposals[PROPOSALS];
	const uint32_t reduction = GEMM_REDUCTION;
	const uint32_t align[] = { (uint32_t)p->align_b, (uint32_t)p->align_a,
		(uint32_t)p->align_c };
	const uint64_t workspace = p->workspace;
	int n = 0;
	CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
	set_preference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
		&reduction, 4);
	set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
		&workspace, 8);
	set_preference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
		&align[0], 4);
	set_preference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
		&align[1], 4);
	set_preference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
		&align[2], 4);
	set_preference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
		&align[2], 4);
	cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(library->handle,
		gemm->operation, gemm->left, gemm->right, gemm->result, gemm->result,
		preference, most, proposals, &n);
	CUBLAS(cublasLtMatmulPreferenceDestroy(preference));
	// take the first proposal, unless there is none
	if (status != CUBLAS_STATUS_NOT_SUPPORTED
		&& status != CUBLAS_STATUS_INVALID_VALUE)
		CUBLAS(status);
	gemm->found = status == CUBLAS_STATUS_SUCCESS && n > 0
		&& proposals[0].state == CUBLAS_STATUS_SUCCESS;
	if (gemm->found)
		gemm->algorithm = proposals[0].algo;
	if (gemm->found && n > 1)
		keep_proposals(gemm, proposals, n);
}

static void prepare_gemm(GemmState *library, PreparedGemm *gemm,
	GemmChoices *choices)
{
	const GemmKey *p = &gemm->key;
	const cublasOperation_t op[] = { CUBLAS_OP_N, CUBLAS_OP_T };
	// describe the operation: arithmetic, transposes, multiprocessors
	CUBLAS(cublasLtMatmulDescCreate(&gemm->operation, p->input == TF32
		? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
	CUBLAS(cublasLtMatmulDescSetAttribute(gemm->operation,
		CUBLASLT_MATMUL_DESC_TRANSA, &op[p->trans_b], sizeof *op));
	CUBLAS(cublasLtMatmulDescSetAttribute(gemm->operation,
		CUBLASLT_MATMUL_DESC_TRANSB, &op[p->trans_a], sizeof *op));
	const int32_t sms = (int32_t)p->sms;
	CUBLAS(cublasLtMatmulDescSetAttribute(gemm->operation,
		CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &sms, sizeof sms));
	// describe the three matrices, as the library sees them
	gemm->left = p->trans_b
		? layout(p, p->input, p->k, p->n, p->ldb, p->step_b)
		: layout(p, p->input, p->n, p->k, p->ldb, p->step_b);
	gemm->right = p->trans_a
		? layout(p, p->input, p->m, p->k, p->lda, p->step_a)
		: layout(p, p->input, p->k, p->m, p->lda, p->step_a);
	gemm->result = layout(p, p->output, p->n, p->m, p->ldc, p->step_c);
	uint64_t number[GEMM_NUMBERS];
	memcpy(number, p, sizeof number);
	const GemmChoice *choice = choices ? gemm_choices_find(choices, number)
		: NULL;
	if (choice)
		use_choice(library, gemm, choice);
	else
		ask_heuristic(library, gemm, choices ? PROPOSALS : 1);
	if (gemm->tuning)
		gemm_choices_begin(choices);
}

// find the algorithm of a matmul
static PreparedGemm *find_gemm(GemmState *l, GemmKey key, GemmChoices *choices)
{
	for (size_t i = 0; i < l->ngemms; i++)
		if (memcmp(&l->gemms[i].key, &key, sizeof key) == 0)
			return &l->gemms[i];
	l->gemms = grow(l->gemms, l->ngemms, sizeof *l->gemms);
	PreparedGemm gemm = { .key = key };
	prepare_gemm(l, &gemm, choices);
	l->gemms[l->ngemms] = gemm;
	return &l->gemms[l->ngemms++];
}

/* the largest power of two, up to 256, that divides an address and two steps */
static size_t alignment(const void *p, size_t step, size_t other)
{
	size_t bits = (uintptr_t)p | step | other | 256;
	return bits & (~bits + 1);
}

static GemmKey key_of(Array C, Array A, Array B, const Matmul *s)
{
	size_t in = type_size(A.type), out = type_size(C.type);
	size_t calls = s->outer > 1, batch = s->inner > 1;
	return (GemmKey){
		.m = s->m, .n = s->n, .k = s->k,
		.trans_a = s->trans_a, .trans_b = s->trans_b,
		.lda = s->lda, .ldb = s->ldb, .ldc = s->ldc, .count = s->inner,
		.step_a = batch * s->step_a[1], .step_b = batch * s->step_b[1],
		.step_c = batch * s->step_c[1],
		.align_a = alignment(A.at, calls * in * s->step_a[0],
			batch * in * s->step_a[1]),
		.align_b = alignment(B.at, calls * in * s->step_b[0],
			batch * in * s->step_b[1]),
		.align_c = alignment(C.at, calls * out * s->step_c[0],
			batch * out * s->step_c[1]),
		.input = A.type, .output = C.type,
		.workspace = calls ? GEMM_SIDE_WORKSPACE : GEMM_WORKSPACE,
		.adds = s->beta != 0,
	};
}

// multiply by the library, or by the fallback
void cuda_matmul(Device *d, Array C, Array A, Array B, Matmul s)
{
	assert(A.type == B.type && "the operands are of one type");
	assert(s.m > 0 && s.n > 0 && s.k > 0);
	double start = clock_ms();
	GemmState *library = library_of(d);
	size_t known = library->ngemms;
	s = matmul_with_few_calls(s);
	double opened = clock_ms();
	GemmKey key = key_of(C, A, B, &s);
	if (d->spare_sms > 0)
		key.sms = cuda_multiprocessors(d);
	PreparedGemm *gemm = find_gemm(library, key, s.outer == 1 ? d->gemms : NULL);
	double chosen = clock_ms();
	// queue the matmul, by the library or by the fallback
	if (!gemm->found) {
		library->fallbacks++;
		cuda_matmul_fallback(d, C, A, B, s);
	} else if (gemm->tuning && !d->capturing) {
		do                         /* what overwrites C may do it again */
			multiply_timed(d, library, gemm, C, A, B, &s);
		while (gemm->tuning && s.beta == 0);
	} else if (s.outer == 1) {
		multiply(library, gemm, C, A, B, &s, 0, library->workspace,
			cuda_stream(d));
	} else {
		multiply_side_by_side(d, library, gemm, C, A, B, &s);
	}
	if (library->ngemms > known) {
		d->choice_ms += chosen - opened;
		d->library_ms += clock_ms() - chosen + (opened - start);
	}
}
