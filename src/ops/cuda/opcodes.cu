/* opcodes.cu: elementary operations, a kernel each; sums of columns have more */
#include "ops/cuda/elementary.cuh"
#include "ops/elementary.h"

// compute an opcode on a GPU
__device__ inline float root(float x) { return sqrtf(x); }
__device__ inline float inverse_root(float x) { return rsqrtf(x); }
__device__ inline float exponential(float x) { return expf(x); }
__device__ inline float logarithm(float x) { return logf(x); }

namespace opcode {
#define OPCODE(NAME, OPERANDS, FORMULA) struct NAME {                    \
	static constexpr int operands = OPERANDS;                        \
	static __device__ inline float compute(float a, float b, float c) \
	{                                                                \
		return FORMULA;                                          \
	}                                                                \
};
#include "ops/opcodes.h"
#undef OPCODE
}

// divide by a number that the host knows
/* I: uint32_t or size_t */
template <class I> struct Divisor { I by, reciprocal; };

template <class I> static Divisor<I> divisor(size_t by)
{
	return { (I)by, (I)((I)-1 / by) };
}

__device__ inline uint32_t upper_half(uint32_t a, uint32_t b)
{
	return __umulhi(a, b);
}

__device__ inline size_t upper_half(size_t a, size_t b)
{
	return __umul64hi(a, b);
}

template <class I> __device__ inline I quotient(I i, const Divisor<I> &d)
{
	const I q = upper_half(i, d.reciprocal);
	return q + (i - q * d.by >= d.by);
}

template <class I> __device__ inline I remainder(I i, const Divisor<I> &d)
{
	const I r = i - upper_half(i, d.reciprocal) * d.by;
	return r < d.by ? r : r - d.by;
}

// describe operands to a kernel
/* how a pack is moved: at once, as one element, or element by element */
typedef enum { CONTIGUOUS, ALL_SAME, SPACED } PackLayout;

/* element k of pack p lies at the sum of the terms, and k steps from there; a
 * term that is not there has stride 0 */
template <class I> struct KernelIndex {
	PackLayout layout;
	I step;
	struct { Divisor<I> div, mod; I stride; } term[MOST_TERMS];
};

template <class I> struct KernelOperand {
	OperandKind kind;
	float number;
	Array a;
	const int32_t *ints;
	KernelIndex<I> at, than;
};

/* Elementary, for at most this many operands; one that is not there is 0. n, C:
 * in packs */
template <int OPERANDS, class I> struct KernelOperation {
	I n, C;
	Array y;
	const int32_t *skip;
	KernelIndex<I> out;
	KernelOperand<I> in[OPERANDS];
};

/* the largest number that counts packs; a block may begin at it */
template <class I> constexpr size_t MOST_PACKS = (I)-1 - MAP_THREADS;

/* describes x for packs of N; returns whether it can */
template <int N, class I>
static bool describe_index(KernelIndex<I> *made, const Index &x)
{
	bool aligned = true;
	for (int k = 0; k < x.n; k++) {
		const Term &t = x.term[k];
		const bool same = t.div % N == 0;
		if (!same && (t.div != 1 || t.mod % N != 0))
			return false;
		const size_t div = same ? t.div / N : 1, mod = same ? t.mod : t.mod / N,
			stride = same ? t.stride : N * t.stride;
		if (div > MOST_PACKS<I> || mod > MOST_PACKS<I> || stride > MOST_PACKS<I>)
			return false;
		made->term[k] = { divisor<I>(div), divisor<I>(mod ? mod : (I)-1),
			(I)stride };
		made->step += same ? 0 : (I)t.stride;
		aligned &= stride % N == 0;
	}
	made->layout = made->step == 0 ? ALL_SAME : made->step == 1 && aligned
		? CONTIGUOUS : SPACED;
	return true;
}

template <int N, class I>
static bool describe_operand(KernelOperand<I> *made, const Operand &x)
{
	made->kind = x.kind;
	made->number = (float)x.number;
	made->a = x.a;
	made->ints = x.ints;
	if (!describe_index<N>(&made->at, x.at) || !describe_index<N>(&made->than,
		x.than))
		return false;
	if (x.ints || (made->at.layout == CONTIGUOUS && !packs(x.a, N)))
		made->at.layout = SPACED;
	return true;
}

template <int N, int OPERANDS, class I>
static bool describe(KernelOperation<OPERANDS, I> *o, const Elementary &e)
{
	*o = { (I)(e.n / N), (I)(e.C / N), e.y, e.skip, {}, {} };
	if (e.n % N != 0 || e.C % N != 0 || e.n / N > MOST_PACKS<I>)
		return false;
	if (!(e.fold == FOLD_NONE ? describe_index<N>(&o->out, e.out)
		: describe_index<1>(&o->out, e.out)))
		return false;
	if (e.fold == FOLD_NONE && o->out.layout == CONTIGUOUS && !packs(e.y, N))
		o->out.layout = SPACED;
	for (int k = 0; k < OPERANDS && k < opcode_operands(e.op); k++)
		if (!describe_operand<N>(&o->in[k], e.in[k]))
			return false;
	return true;
}

// choose how an operation is described
/* calls f with a description of e, and the elements of its packs */
template <int OPERANDS, class F> void with_operation(const Elementary &e, F f)
{
	KernelOperation<OPERANDS, uint32_t> narrow;
	KernelOperation<OPERANDS, size_t> wide;
	if (describe<PACK>(&narrow, e))
		f(narrow, Constant<PACK>());
	else if (describe<1>(&narrow, e))
		f(narrow, Constant<1>());
	else if (describe<1>(&wide, e))
		f(wide, Constant<1>());
	else
		assert(!"an operation that can be described");
}

static bool is_plain(const Index &x)
{
	return x.n == 1 && x.term[0].div == 1 && x.term[0].mod == 0
		&& x.term[0].stride == 1;
}

/* the number of plain operands at the front */
template <int OPERANDS, class I>
static int plain_operands(const Elementary &e,
	const KernelOperation<OPERANDS, I> &o)
{
	int n = 0;
	while (n < opcode_operands(e.op) && e.in[n].kind == MEMORY
		&& is_plain(e.in[n].at) && o.in[n].at.layout == CONTIGUOUS)
		n++;
	return n;
}

/* calls f with n as a Constant, or with MOST where n is larger */
template <int MOST, class F> void with_plain(int n, F f)
{
	if constexpr (MOST > 0)
		if (n < MOST) {
			with_plain<MOST - 1>(n, f);
			return;
		}
	f(Constant<MOST>());
}

// load operands of any index
/* where pack p begins */
template <class I>
__device__ inline size_t index_offset(const KernelIndex<I> &x, I p)
{
	size_t at = 0;
	#pragma unroll
	for (int k = 0; k < MOST_TERMS; k++) {
		const auto &t = x.term[k];
		at += (size_t)remainder(quotient(p, t.div), t.mod) * t.stride;
	}
	return at;
}

template <int N, class I>
__device__ inline void load_memory(float (&x)[N], const KernelOperand<I> &from,
	I p)
{
	const size_t at = index_offset(from.at, p);
	if (N > 1 && from.at.layout == CONTIGUOUS) {
		load(x, from.a, at);
		return;
	}
	if (from.at.layout == ALL_SAME) {
		load(*(float (*)[1])x, from.a, at);
		#pragma unroll
		for (int k = 1; k < N; k++)
			x[k] = x[0];
		return;
	}
	#pragma unroll
	for (int k = 0; k < N; k++)
		load(*(float (*)[1])(x + k), from.a, at + k * from.at.step
			+ (from.ints ? from.ints[(size_t)p * N + k] : 0));
}

template <int N, class I>
__device__ inline void load_comparison(float (&x)[N],
	const KernelOperand<I> &from, I p)
{
	const size_t at = index_offset(from.at, p), than = index_offset(from.than,
		p);
	#pragma unroll
	for (int k = 0; k < N; k++) {
		const size_t left = at + k * from.at.step,
			right = than + k * from.than.step;
		x[k] = from.kind == EQUALS ? left == (size_t)from.ints[right]
			: left <= right;
	}
}

template <int N, class I>
__device__ inline void load_operand(float (&x)[N], const KernelOperand<I> &from,
	I p, bool plain)
{
	if (plain)
		load(x, from.a, (size_t)p * N);
	else if (from.kind == MEMORY)
		load_memory(x, from, p);
	else if (from.kind == NUMBER)
		#pragma unroll
		for (int k = 0; k < N; k++)
			x[k] = from.number;
	else
		load_comparison(x, from, p);
}

/* the operands of pack p, from in[k][first] on; the first PLAIN of them lie one
 * pack after the other */
template <int N, int PLAIN, int M, int OPERANDS, class I>
__device__ inline void load_all(float (&in)[MOST_OPERANDS][M], int first,
	const KernelOperation<OPERANDS, I> &o, I p)
{
	#pragma unroll
	for (int k = 0; k < OPERANDS; k++)
		load_operand(*(float (*)[N])(in[k] + first), o.in[k], p, k < PLAIN);
}

template <class OP, int N>
__device__ inline void compute(float (&y)[N], const float (&in)[MOST_OPERANDS][N])
{
	#pragma unroll
	for (int k = 0; k < N; k++)
		y[k] = OP::compute(in[0][k], in[1][k], in[2][k]);
}

// map any opcode
template <int N, class I>
__device__ inline void store_pack(const Array &to, const KernelIndex<I> &index,
	I p, float (&y)[N])
{
	const size_t at = index_offset(index, p);
	if (N > 1 && index.layout == CONTIGUOUS) {
		store(to, at, y);
		return;
	}
	#pragma unroll
	for (int k = 0; k < N; k++)
		store(to, at + k * index.step, *(float (*)[1])(y + k));
}

/* y[out(p)] = OP(in ...) for packs p < n; nothing if *skip is not 0. PLAIN: that
 * many operands, and y unless it is 0, lie one pack after the other
 * bytes: of y and of the operands that are not broadcast
 * grid: n / 256, block 256 */
template <class OP, int N, int PLAIN, class I>
__global__ __launch_bounds__(MAP_THREADS) void map_kernel(
	const __grid_constant__ KernelOperation<OP::operands, I> o)
{
	const I p = blockIdx.x * (I)MAP_THREADS + threadIdx.x;
	if (p >= o.n)
		return;
	float in[MOST_OPERANDS][N] = { { 0 } }, y[N];
	load_all<N, PLAIN>(in, 0, o, p);
	compute<OP>(y, in);
	if (o.skip && *o.skip)
		return;
	if (PLAIN > 0)
		store(o.y, (size_t)p * N, y);
	else
		store_pack(o.y, o.out, p, y);
}

template <class OP> void launch_map(Device *d, const Elementary &e)
{
	with_operation<OP::operands>(e, [&](const auto &o, auto pack) {
		constexpr int N = decltype(pack)::value;
		const bool plain = is_plain(e.out) && o.out.layout == CONTIGUOUS;
		with_plain<N == 1 ? 0 : OP::operands>(plain ? plain_operands(e, o) : 0,
			[&](auto front) {
			map_kernel<OP, N, decltype(front)::value>
				<<<blocks_for(o.n, MAP_THREADS), MAP_THREADS, 0,
				cuda_stream(d)>>>(o);
		});
	});
	LAUNCHED();
}

static void map_opcode(Device *d, const Elementary &e)
{
	switch (e.op) {
#define OPCODE(NAME, OPERANDS, FORMULA) \
	case E_##NAME: launch_map<opcode::NAME>(d, e); break;
#include "ops/opcodes.h"
#undef OPCODE
	default: assert(!"an opcode");
	}
}

// fold rows of any opcode
/* y = op of the operands in */
template <int N> __device__ inline void compute_any(float (&y)[N], Opcode op,
	const float (&in)[MOST_OPERANDS][N])
{
	switch (op) {
#define OPCODE(NAME, OPERANDS, FORMULA) \
	case E_##NAME: compute<opcode::NAME>(y, in); break;
#include "ops/opcodes.h"
#undef OPCODE
	default: break;
	}
}

struct Sum {
	static __device__ inline float none() { return 0; }
	static __device__ inline float add(float a, float b)
	{
		return __fadd_rn(a, b);
	}
	static __device__ inline float row(float x)
	{
		return blockDim.x == 32 ? warp_sum(x) : block_sum(x);
	}
};

struct Maximum {
	static __device__ inline float none() { return -INFINITY; }
	static __device__ inline float add(float a, float b) { return fmaxf(a, b); }
	static __device__ inline float row(float x)
	{
		return blockDim.x == 32 ? warp_max(x) : block_max(x);
	}
};

/* y[row] = sum or maximum of a row of C packs of N elements
 * bytes: those of the operands
 * grid: rows / blockDim.y, block: row_threads(N C), 1 or 8 */
template <class FOLD, int N, int PLAIN, class I>
__global__ __launch_bounds__(MOST_THREADS, 2) void fold_rows_kernel(
	const __grid_constant__ KernelOperation<MOST_OPERANDS, I> o, Opcode op,
	I rows)
{
	const I row = blockIdx.x * (I)blockDim.y + threadIdx.y, end = (row + 1) * o.C;
	float result = FOLD::none();
	if (row < rows)
		for (I p = row * o.C + threadIdx.x * (PACK / N); p < end;
			p += blockDim.x * (PACK / N))
			#pragma unroll
			for (int k = 0; k < PACK / N && p + k < end; k++) {
				float in[MOST_OPERANDS][N] = { { 0 } }, x[N];
				load_all<N, PLAIN>(in, 0, o, p + k);
				compute_any(x, op, in);
				#pragma unroll
				for (int i = 0; i < N; i++)
					result = FOLD::add(result, x[i]);
			}
	float y[1] = { FOLD::row(result) };
	if (threadIdx.x == 0 && row < rows)
		store_pack(o.y, o.out, row, y);
}

template <class FOLD> void fold_rows(Device *d, const Elementary &e)
{
	const size_t rows = e.n / e.C;
	const unsigned T = row_threads(e.C);
	const dim3 threads(T, T == 32 ? 8 : 1);
	with_operation<MOST_OPERANDS>(e, [&](const auto &o, auto pack) {
		constexpr int N = decltype(pack)::value;
		with_plain<N == 1 ? 0 : 1>(plain_operands(e, o), [&](auto front) {
			fold_rows_kernel<FOLD, N, decltype(front)::value>
				<<<blocks_for(rows, threads.y), threads, 0, cuda_stream(d)>>>(
				o, e.op, decltype(o.n + 0)(rows));
		});
	});
	LAUNCHED();
}

// fold columns of any opcode
enum { ROWS_AHEAD = 4 };

/* partial (slabs, C): sums of the columns of slabs of rows; bytes: those of the
 * operands, and 4 N C a slab; grid: C / 256, slabs, block 256 */
template <int N, int PLAIN, class I>
__global__ __launch_bounds__(MAP_THREADS) void fold_columns_kernel(
	float *partial, const __grid_constant__ KernelOperation<MOST_OPERANDS, I> o,
	Opcode op, size_t rows)
{
	const I j = blockIdx.x * (I)MAP_THREADS + threadIdx.x;
	const size_t slab = blockIdx.y;
	const I end = (I)((slab + 1) * rows / gridDim.y);
	float sum[N] = { 0 };
	if (j >= o.C)
		return;
	for (I row = (I)(slab * rows / gridDim.y); row < end; row += ROWS_AHEAD) {
		float in[MOST_OPERANDS][ROWS_AHEAD * N] = { { 0 } }, x[ROWS_AHEAD * N];
		#pragma unroll
		for (int r = 0; r < ROWS_AHEAD; r++)
			if (row + r < end)
				load_all<N, PLAIN>(in, r * N, o, (row + r) * o.C + j);
		compute_any(x, op, in);
		#pragma unroll
		for (int i = 0; i < ROWS_AHEAD * N; i++)
			if (row + i / N < end)
				sum[i % N] = Sum::add(sum[i % N], x[i]);
	}
	store(partial + (slab * o.C + j) * N, sum);
}

static void fold_columns(Device *d, const Elementary &e)
{
	const size_t rows = e.n / e.C, slabs = row_slabs(rows, e.C);
	Array partial = scratch(d, slabs * e.C, "sums of columns");
	with_operation<MOST_OPERANDS>(e, [&](const auto &o, auto pack) {
		constexpr int N = decltype(pack)::value;
		const dim3 grid(blocks_for(o.C, MAP_THREADS), (unsigned)slabs);
		with_plain<N == 1 ? 0 : 1>(plain_operands(e, o), [&](auto front) {
			fold_columns_kernel<N, decltype(front)::value>
				<<<grid, MAP_THREADS, 0, cuda_stream(d)>>>((float *)partial.at, o,
				e.op, rows);
		});
	});
	LAUNCHED();
	cuda_sum_rows(d, e.y, 1, (const float *)partial.at, slabs, e.C);
	device_free(d, partial.at);
}

extern "C" void cuda_elementary(Device *d, const Elementary *e)
{
	switch (e->fold) {
	case FOLD_NONE:    map_opcode(d, *e); break;
	case FOLD_SUM:     fold_rows<Sum>(d, *e); break;
	case FOLD_MAXIMUM: fold_rows<Maximum>(d, *e); break;
	default:           fold_columns(d, *e); break;
	}
}
