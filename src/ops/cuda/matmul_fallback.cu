/* matmul_fallback.cu: matmuls in any layout, by plain multiply-adds */
#include "ops/cuda/common.cuh"

enum { TILE = 64, DEPTH = 16, EACH = 4, THREADS = 256 };
static_assert((TILE / EACH) * (TILE / EACH) == THREADS, "a square per thread");

/* a slice of an operand, DEPTH deep. Rows are padded: neighbours in a column lie
 * in different banks, and 16-byte reads of a row stay aligned */
struct OperandSlice {
	alignas(16) float at[DEPTH][TILE + EACH];
};

// load a slice of an operand
/* slice[d][i] = from[(first + i) * step + (k + d) * depth_step] */
template <class In>
__device__ void load(OperandSlice &slice, const In *from, size_t first,
	size_t extent,
	size_t step, size_t k, size_t depth, size_t depth_step)
{
	for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS) {
		const int d = depth_step == 1 ? e % DEPTH : e / TILE;
		const int i = depth_step == 1 ? e / DEPTH : e % TILE;
		const bool inside = first + i < extent && k + d < depth;
		slice.at[d][i] = inside
			? widen(from[(first + i) * step + (k + d) * depth_step]) : 0.0f;
	}
}

// multiply two matrices slice by slice
/* C = alpha op(A) op(B) + beta C for s.outer * s.inner matrices
 * op(A): m x k, op(B): k x n, C: m x n; accumulated in fp32, in the order of k
 * 2 m n k FLOPs; A is read n/64 times and B m/64 times, mostly from L2, C is
 * written once; roofline bound: FLOPs over the rate of fp32
 * grid: tiles of C, by columns, rows, matrices; block 256 */
template <class In, class Out>
__global__ __launch_bounds__(THREADS) void matmul_fallback(Out *C, const In *A,
	const In *B, Matmul s)
{
	__shared__ OperandSlice a, b;
	// find this block's tile and its matrices
	const size_t across = (s.n + TILE - 1) / TILE;
	const size_t down = (s.m + TILE - 1) / TILE;
	const size_t first_column = blockIdx.x % across * TILE;
	const size_t first_row = blockIdx.x / across % down * TILE;
	const size_t matrix = blockIdx.x / across / down;
	const size_t o = matrix / s.inner, i = matrix % s.inner;
	A += o * s.step_a[0] + i * s.step_a[1];
	B += o * s.step_b[0] + i * s.step_b[1];
	C += o * s.step_c[0] + i * s.step_c[1];
	const size_t row_a = s.trans_a ? 1 : s.lda;
	const size_t depth_a = s.trans_a ? s.lda : 1;
	const size_t column_b = s.trans_b ? s.ldb : 1;
	const size_t depth_b = s.trans_b ? 1 : s.ldb;
	float sum[EACH][EACH] = {};
	const int row = threadIdx.x / (TILE / EACH) * EACH;
	const int column = threadIdx.x % (TILE / EACH) * EACH;
	for (size_t k = 0; k < s.k; k += DEPTH) {
		load(a, A, first_row, s.m, row_a, k, s.k, depth_a);
		load(b, B, first_column, s.n, column_b, k, s.k, depth_b);
		__syncthreads();                /* the slices are complete */
		// multiply the slices, and add up
		#pragma unroll
		for (int d = 0; d < DEPTH; d++) {
			const auto x = *(const Pack<float, EACH> *)&a.at[d][row];
			const auto y = *(const Pack<float, EACH> *)&b.at[d][column];
			#pragma unroll
			for (int r = 0; r < EACH; r++)
				#pragma unroll
				for (int c = 0; c < EACH; c++)
					sum[r][c] = fmaf(x.at[r], y.at[c], sum[r][c]);
		}
		__syncthreads();                /* nobody reads them any more */
	}
	// write this thread's square of C
	const float alpha = (float)s.alpha, beta = (float)s.beta;
	#pragma unroll
	for (int r = 0; r < EACH; r++)
		#pragma unroll
		for (int c = 0; c < EACH; c++) {
			const size_t at_row = first_row + row + r;
			const size_t at_column = first_column + column + c;
			if (at_row >= s.m || at_column >= s.n)
				continue;
			Out *to = C + at_row * s.ldc + at_column;
			const float old = beta == 0 ? 0.0f : beta * widen(*to);
			*to = narrow<Out>(fmaf(alpha, sum[r][c], old));
		}
}

// launch the kernel for the types of the arrays
extern "C" void cuda_matmul_fallback(Device *d, Array C, Array A, Array B,
	Matmul s)
{
	s.outer = s.outer ? s.outer : 1;
	s.inner = s.inner ? s.inner : 1;
	const size_t across = blocks_for(s.n, TILE), down = blocks_for(s.m, TILE);
	const unsigned blocks = blocks_for(across * down * s.outer * s.inner, 1);
	with_type(A.type == TF32 ? FP32 : A.type, [&](auto in) {
		with_type(C.type, [&](auto out) {
			using In = decltype(in);
			using Out = decltype(out);
			matmul_fallback<<<blocks, THREADS, 0, cuda_stream(d)>>>(
				(Out *)C.at, (const In *)A.at, (const In *)B.at, s);
		});
	});
	LAUNCHED();
}
