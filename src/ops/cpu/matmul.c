#include "ops/cpu/cpu.h"

#include <cblas.h>
#include <omp.h>

// multiply two matrices with OpenBLAS
#ifdef REAL_IS_DOUBLE
#define cblas_gemm cblas_dgemm
#else
#define cblas_gemm cblas_sgemm
#endif

static void gemm(real *c, const real *a, const real *b, const Matmul *s)
{
	cblas_gemm(CblasRowMajor, s->trans_a ? CblasTrans : CblasNoTrans,
		s->trans_b ? CblasTrans : CblasNoTrans,
		(int)s->m, (int)s->n, (int)s->k, (real)s->alpha, a, (int)s->lda, b,
			(int)s->ldb, (real)s->beta, c, (int)s->ldc);
}

void cpu_matmul(Device *d, Array C, Array A, Array B, Matmul s)
{
	size_t outer = s.outer ? s.outer : 1, inner = s.inner ? s.inner : 1;
	// one matrix: let OpenBLAS use all threads; many: one thread each
	if (outer * inner == 1) {
		gemm(C.at, A.at, B.at, &s);
	} else {
		#pragma omp parallel for collapse(2) schedule(static)
		for (size_t o = 0; o < outer; o++)
			for (size_t i = 0; i < inner; i++)
				gemm((real *)C.at + o * s.step_c[0] + i * s.step_c[1],
					(const real *)A.at + o * s.step_a[0] + i * s.step_a[1],
					(const real *)B.at + o * s.step_b[0] + i * s.step_b[1], &s);
	}
	// round C to its format
	if (C.type != TYPE_REAL && s.ldc == s.n && outer * inner == 1) {
		cpu_round(C, s.m * s.n);
	} else if (C.type != TYPE_REAL) {
		#pragma omp parallel for collapse(3) schedule(static)
		for (size_t o = 0; o < outer; o++)
			for (size_t i = 0; i < inner; i++)
				for (size_t row = 0; row < s.m; row++)
					cpu_round(array_at(C, o * s.step_c[0] + i * s.step_c[1]
						+ row * s.ldc), s.n);
	}
}
