/* mma_tiles.cuh: tiles of rows in shared memory; their matmuls in registers */
#ifndef OPS_CUDA_MMA_TILES_CUH
#define OPS_CUDA_MMA_TILES_CUH

#include "ops/attention_plan.h"
#include "ops/cuda/mma.cuh"

/* warps of a block of threads, and the rows that stay with it, 16 a warp */
enum { WARPS = 4, M = 16 * WARPS };

// copy tiles to shared memory
/* the n rows of one head */
template <class T> struct HeadRows {
	T *at;
	size_t step;                        /* elements to the next row */
	int n;
};

/* those of the block's head, of n rows or where packed sequences begin; group:
 * heads that share one of x */
template <class T>
__device__ inline HeadRows<T> rows_of(Heads x, const int *starts, size_t n,
	size_t H, size_t group = 1)
{
	const size_t own = blockIdx.x / group, batch = own / (H / group),
		head = own % (H / group);
	T *at = (T *)x.x.at + head * x.head;
	if (starts == NULL)
		return { at + batch * x.batch, x.row, (int)n };
	return { at + starts[batch] * x.row, x.row,
		starts[batch + 1] - starts[batch] };
}

/* of Q, O, dO and dQ; of K and V; of dK and dV, which each head of Q has */
template <class T>
__device__ inline HeadRows<T> query_rows(Heads x, const Attention &a)
{
	return rows_of<T>(x, a.starts_q, a.seqlen_q, a.H);
}

template <class T>
__device__ inline HeadRows<T> key_rows(Heads x, const Attention &a)
{
	return rows_of<T>(x, a.starts_k, a.seqlen_k, a.H, a.group);
}

template <class T>
__device__ inline HeadRows<T> own_key_rows(Heads x, const Attention &a)
{
	return rows_of<T>(x, a.starts_k, a.seqlen_k, a.H);
}

/* numbers of L that are before those of the block's head */
__device__ inline size_t rows_before(const Attention &a)
{
	return a.starts_q ? blockIdx.x % a.H * a.total_q
		+ a.starts_q[blockIdx.x / a.H] : blockIdx.x * a.seqlen_q;
}

/* N rows of D elements in shared memory, padded against bank conflicts */
template <class T, int N, int D> struct PaddedTile {
	static constexpr int stride = D + 16 / sizeof(T);
	T at[N * stride];
};

/* copies N elements, 16 bytes, or writes as many zeros; wide: asynchronously */
template <int N, class T>
__device__ inline void copy_async(T *to, const T *from, bool inside, bool wide)
{
	if (wide)
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
			:: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from),
			"r"(inside ? 16 : 0) : "memory");
	else
		#pragma unroll
		for (int i = 0; i < N; i++)
			to[i] = inside ? from[i] : narrow<T>(0);
}

/* starts the copy of N rows of x from `first` on; rows after the last become 0 */
template <class T, int N, int D>
__device__ inline void fetch_tile(PaddedTile<T, N, D> &tile,
	HeadRows<const T> x, int first,
	bool wide)
{
	constexpr int each = 16 / sizeof(T), across = D / each,
		team = across % 4 ? 2 : 4;      /* threads of a row */
	for (int row = threadIdx.x / team; row < N; row += 32 * WARPS / team) {
		const bool inside = first + row < x.n;
		const int start = threadIdx.x % team * each;
		T *to = tile.at + row * tile.stride + start;
		const T *from = x.at + (inside ? first + row : 0) * x.step + start;
		#pragma unroll
		for (int i = 0; i < across / team; i++)
			copy_async<each>(to + i * team * each, from + i * team * each, inside,
				wide);
	}
}

/* makes a group of this thread's copies since the last call */
__device__ inline void cp_async_commit_group()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

/* waits for the copies of all threads, but for their latest N groups */
template <int N> __device__ inline void cp_async_wait_and_sync()
{
	asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
	__syncthreads();
}

// multiply tiles
/* S = A B^T for a warp's 16 rows of a and the N rows of b; both have D columns */
template <class F, int N, int D, class T>
__device__ inline void matmul_nt(MmaBlock (&s)[N / 16], const T *a,
	const PaddedTile<T, N, D> &b)
{
	constexpr int stride = PaddedTile<T, N, D>::stride;
	#pragma unroll
	for (int n = 0; n < N / 16; n++)
		s[n] = MmaBlock();
	#pragma unroll
	for (int k = 0; k < D; k += 16) {
		const auto left = F::rows(a + k, stride);
		#pragma unroll
		for (int n = 0; n < N / 16; n++)
			F::multiply(s[n], left,
				F::columns(b.at + n * 16 * stride + k, stride));
	}
}

/* O = O + P B for a warp's 16 rows of p, in accumulators, and the N rows of b */
template <class F, int N, int D, class T>
__device__ inline void matmul_add(MmaBlock (&o)[D / 16],
	const MmaBlock (&p)[N / 16],
	const PaddedTile<T, N, D> &b)
{
	constexpr int stride = PaddedTile<T, N, D>::stride;
	typename F::A left[N / 16];
	#pragma unroll
	for (int n = 0; n < N / 16; n++)
		left[n] = F::from(p[n]);
	#pragma unroll
	for (int d = 0; d < D / 16; d++) {
		MmaBlock sum = {};
		#pragma unroll
		for (int n = 0; n < N / 16; n++)
			F::multiply(F::exact ? sum : o[d], left[n],
				F::across(b.at + n * 16 * stride + d * 16, stride));
		#pragma unroll
		for (int i = 0; F::exact && i < 8; i++)
			o[d].at[i / 4][i % 4] += sum.at[i / 4][i % 4];
	}
}

// look at the elements of blocks
/* calls f(element, low, row, column) for each element of 16 rows that this thread
 * has; low: is it in the lower 8 of the rows? */
template <int C, class Each>
__device__ inline void each(MmaBlock (&x)[C], Each f)
{
	const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
	#pragma unroll
	for (int i = 0; i < C * 8; i++) {
		const int c = i / 8, j = i / 4 % 2, low = i / 2 % 2;
		f(x[c].at[j][i % 4], low, low * 8 + row,
			c * 16 + j * 8 + column + i % 2);
	}
}

/* masks keys after the diagonal or after the last; row: the last key that the
 * first row of s sees; key: of its first column */
template <int C>
__device__ inline void apply_mask(MmaBlock (&s)[C], int row, int key,
	int seqlen_k,
	bool causal)
{
	const int last = key + 16 * C - 1;
	if (last < seqlen_k && !(causal && last > row))
		return;
	each(s, [&](float &x, int, int i, int j) {
		if (key + j >= seqlen_k || (causal && key + j > row + i))
			x = -INFINITY;
	});
}

/* stores o to the rows of x from `first` on, as far as there are any */
template <int C, class T>
__device__ inline void write_rows(HeadRows<T> x, int first,
	const MmaBlock (&o)[C],
	bool wide)
{
	const int lane = threadIdx.x % 32;
	#pragma unroll
	for (int i = 0; i < C * 4; i++) {
		const int c = i / 4, j = i / 2 % 2, low = i % 2;
		const int row = first + low * 8 + lane / 4;
		const float (&pair)[2] = *(const float (*)[2])&o[c].at[j][low * 2];
		if (row >= x.n)
			continue;
		T *to = x.at + row * x.step + c * 16 + j * 8 + lane % 4 * 2;
		if (wide)
			store(to, pair);
		else
			store_by<1>(to, pair);
	}
}

// exponentiate scores (online softmax)
/* turns scores into exponentials relative to the largest score so far, and scales
 * the sums and outputs of earlier tiles down to it */
template <int C, int D>
__device__ inline void online_softmax(MmaBlock (&s)[C], MmaBlock (&o)[D],
	float (&largest)[2], float (&sum)[2], float scale)
{
	const float base = scale * LOG2_E;
	float next[2] = { largest[0], largest[1] }, rescale[2];
	each(s, [&](float &x, int low, int, int) {
		next[low] = fmaxf(next[low], x);
	});
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		next[low] = quad_max(next[low]);
		rescale[low] = exp2_approx((largest[low] - next[low]) * base);
		largest[low] = next[low];
		sum[low] *= rescale[low];
	}
	each(o, [&](float &x, int low, int, int) { x *= rescale[low]; });
	each(s, [&](float &x, int low, int, int) {
		x = exp2_approx((x - next[low]) * base);
		sum[low] += x;
	});
}

// divide by the row sums
/* divides the outputs of a warp's rows, from `top` on, by their sums, and stores
 * L of those among the head's n rows */
template <int C>
__device__ inline void divide_by_sums(MmaBlock (&o)[C], const float (&largest)[2],
	const float (&sum)[2], float *L, int top, int n, float scale)
{
	float inverse[2];
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const int row = top + low * 8 + threadIdx.x % 32 / 4;
		const float total = quad_sum(sum[low]);
		inverse[low] = inverse_sum(total);
		if (row < n && threadIdx.x % 4 == 0)
			L[row] = largest[low] * scale + logf(total);
	}
	each(o, [&](float &x, int low, int, int) { x *= inverse[low]; });
}

// find delta of two rows
/* the sum of scale dO O over a row, for each of a thread's two rows, N elements
 * at a time */
template <int D, int N, class T>
__device__ inline void find_delta(float (&delta)[2], HeadRows<const T> o,
	HeadRows<const T> d, int top, float scale)
{
	#pragma unroll
	for (int low = 0; low < 2; low++) {
		const int row = top + low * 8 + threadIdx.x % 32 / 4;
		float sum = 0, x[N], y[N];
		for (int c = threadIdx.x % 4 * N; c < D && row < o.n; c += 4 * N) {
			load(x, o.at + row * o.step + c);
			load(y, d.at + row * d.step + c);
			#pragma unroll
			for (int i = 0; i < N; i++)
				sum += x[i] * y[i];
		}
		delta[low] = quad_sum(sum) * scale;
	}
}

// rotate pairs of columns back
/* rotates a warp's rows, from `first` on, back by their angles; cosine NULL: not
 * rotated */
template <int C>
__device__ inline void rope_backward(MmaBlock (&x)[C], const AttentionGradient &g,
	int first, int n)
{
	const int lane = threadIdx.x % 32;
	#pragma unroll
	for (int i = 0; i < C * 4; i++) {
		const int row = first + i % 2 * 8 + lane / 4;
		float *pair = &x[i / 4].at[i / 2 % 2][i % 2 * 2];
		if (row >= n || g.cosine.at == NULL)
			continue;
		const size_t at = row * (size_t)(C * 8) + i / 2 * 4 + lane % 4;
		const float c = ((const float *)g.cosine.at)[at],
			s = ((const float *)g.sine.at)[at], even = pair[0], odd = pair[1];
		pair[0] = c * even + s * odd;
		pair[1] = c * odd - s * even;
	}
}
#endif
