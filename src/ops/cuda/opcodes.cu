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
struct Divisor { size_t by, reciprocal; };      /* by 0: there is none */

static Divisor divisor(size_t by)
{
	return { by, by ? SIZE_MAX / by : 0 };
}

__device__ inline size_t quotient(size_t i, const Divisor &d)
{
	const size_t q = __umul64hi(i, d.reciprocal);
	return q + (i - q * d.by >= d.by);
}

__device__ inline size_t remainder(size_t i, const Divisor &d)
{
	const size_t r = i - __umul64hi(i, d.reciprocal) * d.by;
	return r < d.by ? r : r - d.by;
}

// describe operands to a kernel
/* an index, as Index has it; identity: element i lies at i */
struct KernelIndex {
	bool identity;
	int n;
	struct { Divisor div, mod; size_t stride; } term[MOST_TERMS];
};

/* where a pack's elements lie: next to each other, all in one place, anywhere */
typedef enum { CONTIGUOUS, ALL_SAME, SCATTERED } PackLayout;

struct KernelOperand {
	OperandKind kind;
	PackLayout layout;
	float number;
	Array a;
	const int32_t *ints;
	KernelIndex at, than;
};

/* Elementary, for at most this many operands; one that is not there is 0 */
template <int OPERANDS> struct KernelOperation {
	size_t n, C;
	Array y;
	const int32_t *skip;
	KernelIndex out;
	KernelOperand in[OPERANDS];
};

static PackLayout index_layout(const Index &x)
{
	int neighbours = 0;
	bool aligned = true;
	for (int k = 0; k < x.n; k++) {
		const Term &t = x.term[k];
		if (t.div == 1 && t.stride == 1 && t.mod % PACK == 0)
			neighbours++;
		else if (t.div % PACK != 0)
			return SCATTERED;
		aligned &= t.div == 1 || t.stride % PACK == 0;
	}
	return neighbours == 0 ? ALL_SAME : neighbours == 1 && aligned ? CONTIGUOUS
		: SCATTERED;
}

static PackLayout operand_layout(const Operand &x)
{
	const PackLayout layout = index_layout(x.at);
	if (x.kind == NUMBER)
		return ALL_SAME;
	if (x.kind == MEMORY)
		return x.ints || (layout == CONTIGUOUS && !packs(x.a, PACK)) ? SCATTERED
			: layout;
	return index_layout(x.than) == ALL_SAME ? layout : SCATTERED;
}

static KernelIndex kernel_index(const Index &x)
{
	const bool identity = x.n == 1 && x.term[0].div == 1 && x.term[0].mod == 0
		&& x.term[0].stride == 1;
	KernelIndex made = { identity, x.n, {} };
	for (int k = 0; k < x.n; k++)
		made.term[k] = { divisor(x.term[k].div), divisor(x.term[k].mod),
			x.term[k].stride };
	return made;
}

template <int OPERANDS>
static KernelOperation<OPERANDS> kernel_operation(const Elementary &e)
{
	KernelOperation<OPERANDS> o = { e.n, e.C, e.y, e.skip,
		kernel_index(e.out), {} };
	for (int k = 0; k < OPERANDS && k < opcode_operands(e.op); k++) {
		const Operand &x = e.in[k];
		o.in[k] = { x.kind, operand_layout(x), (float)x.number, x.a, x.ints,
			kernel_index(x.at), kernel_index(x.than) };
	}
	return o;
}

/* may all operands be loaded in packs? */
template <int OPERANDS>
static bool all_in_packs(const KernelOperation<OPERANDS> &o)
{
	bool all = true;
	for (int k = 0; k < OPERANDS; k++)
		all &= o.in[k].layout != SCATTERED;
	return all;
}

// load operands of any index
/* the offset that index x gives element i */
__device__ inline size_t index_offset(const KernelIndex &x, size_t i)
{
	size_t at = 0;
	if (x.identity)
		return i;
	#pragma unroll
	for (int k = 0; k < MOST_TERMS; k++) {
		if (k >= x.n)
			break;
		const auto &t = x.term[k];
		const size_t whole = t.div.by == 1 ? i : quotient(i, t.div);
		at += (t.mod.by ? remainder(whole, t.mod) : whole) * t.stride;
	}
	return at;
}

template <int N>
__device__ inline void load_memory(float (&x)[N], const KernelOperand &from,
	size_t i)
{
	const size_t at = index_offset(from.at, i);
	float value[1];
	if (N > 1 && from.layout == CONTIGUOUS) {
		load(x, from.a, at);
		return;
	}
	load(value, from.a, from.ints ? at + from.ints[i] : at);
	#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = value[0];
}

template <int N>
__device__ inline void load_operand(float (&x)[N], const KernelOperand &from,
	size_t i)
{
	if (from.kind == MEMORY) {
		load_memory(x, from, i);
		return;
	}
	const size_t step = from.layout == CONTIGUOUS;
	size_t at = 0, than = 0;
	if (from.kind != NUMBER) {
		at = index_offset(from.at, i);
		than = index_offset(from.than, i);
	}
	if (from.kind == EQUALS)
		than = (size_t)from.ints[than];
	#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = from.kind == NUMBER ? from.number : from.kind == EQUALS
			? at + k * step == than : at + k * step <= than;
}

/* the operands of elements i ... i + N - 1 */
template <int OPERANDS, int N>
__device__ inline void load_all(float (&in)[MOST_OPERANDS][N],
	const KernelOperation<OPERANDS> &o, size_t i)
{
	#pragma unroll
	for (int k = 0; k < OPERANDS; k++)
		load_operand(in[k], o.in[k], i);
}

template <class OP, int N>
__device__ inline void compute(float (&y)[N], const float (&in)[MOST_OPERANDS][N])
{
	#pragma unroll
	for (int k = 0; k < N; k++)
		y[k] = OP::compute(in[0][k], in[1][k], in[2][k]);
}

// map any opcode
/* y[out(i)] = OP(in ...) for i < n, a multiple of N; nothing if *skip is not 0
 * bytes: of y and of the operands that are not broadcast
 * grid: n / (256 N), block 256 */
template <class OP, int N>
__global__ __launch_bounds__(MAP_THREADS) void map_kernel(
	const __grid_constant__ KernelOperation<OP::operands> o)
{
	const size_t i = (blockIdx.x * (size_t)MAP_THREADS + threadIdx.x) * N;
	if (i >= o.n || (o.skip && *o.skip))
		return;
	float in[MOST_OPERANDS][N] = { { 0 } }, y[N];
	load_all(in, o, i);
	compute<OP>(y, in);
	store(o.y, index_offset(o.out, i), y);
}

template <class OP> void launch_map(Device *d, const Elementary &e)
{
	const auto o = kernel_operation<OP::operands>(e);
	const bool wide = all_in_packs(o) && packs(e.y, PACK) && e.n % PACK == 0
		&& index_layout(e.out) == CONTIGUOUS;
	const auto kernel = wide ? map_kernel<OP, PACK> : map_kernel<OP, 1>;
	kernel<<<blocks_for(e.n, (wide ? PACK : 1) * MAP_THREADS), MAP_THREADS, 0,
		cuda_stream(d)>>>(o);
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
/* y = op of elements i ... i + N - 1 */
template <int N> __device__ inline void compute_any(float (&y)[N], Opcode op,
	const KernelOperation<MOST_OPERANDS> &o, size_t i)
{
	float in[MOST_OPERANDS][N];
	load_all(in, o, i);
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

/* y[row] = sum or maximum of a row of C elements; N: elements of a load
 * bytes: those of the operands
 * grid: rows / blockDim.y, block: row_threads(C), 1 or 8 */
template <class FOLD, int N>
__global__ __launch_bounds__(MOST_THREADS, 2) void fold_rows_kernel(
	const __grid_constant__ KernelOperation<MOST_OPERANDS> o, Opcode op,
	size_t rows)
{
	const size_t row = (size_t)blockIdx.x * blockDim.y + threadIdx.y;
	float result = FOLD::none();
	for (size_t j = threadIdx.x * PACK; j < o.C && row < rows;
		j += blockDim.x * PACK)
		#pragma unroll
		for (int k = 0; k < PACK; k += N) {
			float x[N];
			if (N == 1 && j + k >= o.C)
				break;
			compute_any(x, op, o, row * o.C + j + k);
			#pragma unroll
			for (int i = 0; i < N; i++)
				result = FOLD::add(result, x[i]);
		}
	float y[1] = { FOLD::row(result) };
	if (threadIdx.x == 0 && row < rows)
		store(o.y, index_offset(o.out, row), y);
}

template <class FOLD> void fold_rows(Device *d, const Elementary &e)
{
	const auto o = kernel_operation<MOST_OPERANDS>(e);
	const size_t rows = e.n / e.C;
	const unsigned T = row_threads(e.C);
	const dim3 threads(T, T == 32 ? 8 : 1);
	const bool wide = all_in_packs(o) && e.C % PACK == 0;
	const auto kernel = wide ? fold_rows_kernel<FOLD, PACK>
		: fold_rows_kernel<FOLD, 1>;
	kernel<<<blocks_for(rows, threads.y), threads, 0, cuda_stream(d)>>>(o,
		e.op, rows);
	LAUNCHED();
}

// fold columns of any opcode
/* partial (slabs, C): sums of the columns of slabs of rows; bytes: those of the
 * operands, and 4 C a slab; grid: C / 256, slabs, block 256 */
__global__ __launch_bounds__(MAP_THREADS) void fold_columns_kernel(
	float *partial, const __grid_constant__ KernelOperation<MOST_OPERANDS> o,
	Opcode op, size_t rows)
{
	const size_t j = blockIdx.x * (size_t)MAP_THREADS + threadIdx.x;
	const size_t slab = blockIdx.y, end = (slab + 1) * rows / gridDim.y;
	float sum = 0;
	if (j >= o.C)
		return;
	#pragma unroll 4
	for (size_t row = slab * rows / gridDim.y; row < end; row++) {
		float x[1];
		compute_any(x, op, o, row * o.C + j);
		sum = Sum::add(sum, x[0]);
	}
	partial[slab * o.C + j] = sum;
}

static void fold_columns(Device *d, const Elementary &e)
{
	const size_t rows = e.n / e.C, slabs = row_slabs(rows, e.C);
	Array partial = scratch(d, slabs * e.C, "sums of columns");
	const dim3 grid(blocks_for(e.C, MAP_THREADS), (unsigned)slabs);
	fold_columns_kernel<<<grid, MAP_THREADS, 0, cuda_stream(d)>>>(
		(float *)partial.at, kernel_operation<MOST_OPERANDS>(e), e.op, rows);
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
