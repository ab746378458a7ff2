/* opcodes.cu: elementary operations, a kernel each; sums of columns have more */
#include "ops/cuda/elementary.cuh"
#include "ops/elementary.h"

// compute an opcode on a GPU
__device__ inline float root(float x) { return sqrtf(x); }
__device__ inline float inverse_root(float x) { return rsqrtf(x); }
__device__ inline float exponential(float x) { return expf(x); }
__device__ inline float logarithm(float x) { return logf(x); }

__device__ inline float compute(int op, float a, float b, float c)
{
	switch (op) {
#define OPCODE(NAME, OPERANDS, FORMULA) case E_##NAME: return FORMULA;
#include "ops/opcodes.h"
#undef OPCODE
	}
	return 0;
}

// load operands of any index
/* the offset that index x gives element i */
__device__ inline size_t index_offset(const Index &x, size_t i)
{
	size_t at = 0;
	for (int k = 0; k < x.n; k++) {
		const Term t = x.term[k];
		const size_t whole = t.div == 1 ? i : i / t.div;
		at += (t.mod ? whole % t.mod : whole) * t.stride;
	}
	return at;
}

/* the operand's value for element i */
__device__ inline float element_value(const Operand &x, size_t i)
{
	float value[1];
	size_t at = index_offset(x.at, i);
	switch (x.kind) {
	case NUMBER:  return (float)x.number;
	case AT_MOST: return at <= index_offset(x.than, i);
	case EQUALS:  return at == (size_t)x.ints[index_offset(x.than, i)];
	default:      break;
	}
	load(value, x.a, x.ints ? at + x.ints[i] : at);
	return value[0];
}

/* where a pack's elements lie: next to each other, all in one place, anywhere */
typedef enum { CONTIGUOUS, ALL_SAME, SCATTERED } PackLayout;

/* the layout of every pack of an operand */
static PackLayout pack_layout(const Operand *x)
{
	int neighbours = 0;
	bool aligned = true;
	if (x->kind == NUMBER)
		return ALL_SAME;
	if (x->kind != MEMORY || x->ints)
		return SCATTERED;
	for (int k = 0; k < x->at.n; k++) {
		const Term *t = &x->at.term[k];
		if (t->div == 1 && t->stride == 1 && t->mod % PACK == 0)
			neighbours++;
		else if (t->div % PACK != 0)
			return SCATTERED;
		aligned &= t->div == 1 || t->stride % PACK == 0;
	}
	if (neighbours == 0)
		return ALL_SAME;
	return neighbours == 1 && aligned && packs(x->a, PACK) ? CONTIGUOUS
		: SCATTERED;
}

/* one layout for each operand */
typedef struct OperandLayouts { PackLayout of[MOST_OPERANDS]; } OperandLayouts;

/* finds the layouts; may all operands in memory be loaded in packs? */
static bool all_in_packs(const Elementary *e, OperandLayouts *packing)
{
	bool all = true;
	for (int k = 0; k < MOST_OPERANDS; k++) {
		const Operand *x = &e->in[k];
		packing->of[k] = k < opcode_operands(e->op) ? pack_layout(x) : ALL_SAME;
		all = all && (x->kind != MEMORY || packing->of[k] != SCATTERED);
	}
	return all;
}

template <int N>
__device__ inline void load_operand(float (&x)[N], const Operand &from,
	PackLayout packing,
	size_t i)
{
	if (packing == CONTIGUOUS) {
		load(x, from.a, index_offset(from.at, i));
		return;
	}
	#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = k > 0 && packing == ALL_SAME ? x[0] : element_value(from, i + k);
}

template <int OPERANDS, int N>
__device__ inline void compute_values(float (&y)[N], const Elementary &e, int op,
	const OperandLayouts &packing, size_t i)
{
	float in[MOST_OPERANDS][N] = { { 0 } };
	#pragma unroll
	for (int k = 0; k < OPERANDS; k++)
		load_operand(in[k], e.in[k], packing.of[k], i);
	#pragma unroll
	for (int k = 0; k < N; k++)
		y[k] = compute(op, in[0][k], in[1][k], in[2][k]);
}

// map any opcode
/* y[out(i)] = op(in ...) for i < n
 * bytes: of y and of the operands that are not broadcast
 * grid: n / (256 N), block 256 */
template <int OP, int OPERANDS, int N>
__global__ __launch_bounds__(MAP_THREADS) void map_opcode_kernel(Elementary e,
	OperandLayouts packing)
{
	size_t i = (blockIdx.x * (size_t)MAP_THREADS + threadIdx.x) * N;
	if (e.skip && *e.skip)
		return;
	if (N > 1 && i + N <= e.n) {
		float y[N];
		compute_values<OPERANDS>(y, e, OP, packing, i);
		store(e.y, index_offset(e.out, i), y);
		return;
	}
	for (const size_t end = i + N; i < end && i < e.n; i++) {
		float y[1];
		compute_values<OPERANDS>(y, e, OP, OperandLayouts{ { SCATTERED,
			SCATTERED, SCATTERED } }, i);
		store(e.y, index_offset(e.out, i), y);
	}
}

template <int OP, int OPERANDS> void launch_map(Device *d, const Elementary &e)
{
	OperandLayouts packing;
	const bool neighbours = e.out.n == 1 && e.out.term[0].stride == 1
		&& packs(e.y, PACK);
	if (all_in_packs(&e, &packing) && neighbours)
		map_opcode_kernel<OP, OPERANDS, PACK>
			<<<blocks_for(e.n, PACK * MAP_THREADS), MAP_THREADS, 0,
			cuda_stream(d)>>>(e, packing);
	else
		map_opcode_kernel<OP, OPERANDS, 1>
			<<<blocks_for(e.n, MAP_THREADS), MAP_THREADS, 0,
			cuda_stream(d)>>>(e, packing);
	LAUNCHED();
}

static void map_opcode(Device *d, const Elementary &e)
{
	switch (e.op) {
#define OPCODE(NAME, OPERANDS, FORMULA) \
	case E_##NAME: launch_map<E_##NAME, OPERANDS>(d, e); break;
#include "ops/opcodes.h"
#undef OPCODE
	default: assert(!"an opcode");
	}
}

// fold rows of any opcode
/* y[row] = sum or maximum of a row of C elements; bytes: those of the operands
 * grid: rows / blockDim.y, block: row_threads(C), 1 or 8 */
template <bool WIDE>
__global__ __launch_bounds__(MOST_THREADS) void fold_rows_kernel(Elementary e,
	OperandLayouts packing, bool sum)
{
	const size_t row = (size_t)blockIdx.x * blockDim.y + threadIdx.y;
	float result = sum ? 0 : -INFINITY;
	for (size_t j = threadIdx.x * PACK; j < e.C && row < e.n / e.C;
		j += blockDim.x * PACK) {
		// add a pack to the thread's result
		float x[PACK];
		if (WIDE)
			compute_values<MOST_OPERANDS>(x, e, e.op, packing, row * e.C + j);
		#pragma unroll
		for (int k = 0; k < PACK; k++) {
			float element_value[1] = { x[k] };
			if (!WIDE && j + k < e.C)
				compute_values<MOST_OPERANDS>(element_value, e, e.op, packing,
					row * e.C + j + k);
			if (WIDE || j + k < e.C)
				result = sum ? __fadd_rn(result, element_value[0]) : fmaxf(result,
					element_value[0]);
		}
	}
	if (blockDim.x == 32)
		result = sum ? warp_sum(result) : warp_max(result);
	else
		result = sum ? block_sum(result) : block_max(result);
	if (threadIdx.x == 0 && row < e.n / e.C) {
		float y[1] = { result };
		store(e.y, index_offset(e.out, row), y);
	}
}

// fold rows of any opcode
static void fold_rows(Device *d, const Elementary &e)
{
	OperandLayouts packing;
	const unsigned T = row_threads(e.C);
	const dim3 threads(T, T == 32 ? 8 : 1);
	const bool wide = all_in_packs(&e, &packing) && e.C % PACK == 0;
	const auto kernel = wide ? fold_rows_kernel<true> : fold_rows_kernel<false>;
	if (!wide)
		packing = { { SCATTERED, SCATTERED, SCATTERED } };
	kernel<<<blocks_for(e.n / e.C, threads.y), threads, 0, cuda_stream(d)>>>(e,
		packing, e.fold == FOLD_SUM);
	LAUNCHED();
}

// fold columns of any opcode
/* partial (slabs, C): sums of the columns of slabs of rows; bytes: those of the
 * operands, and 4 C a slab; grid: C / 256, slabs, block 256 */
__global__ __launch_bounds__(MAP_THREADS) void fold_columns_kernel(
	float *partial, Elementary e)
{
	const size_t j = blockIdx.x * (size_t)MAP_THREADS + threadIdx.x;
	const size_t rows = e.n / e.C, slab = blockIdx.y;
	const OperandLayouts apart = { { SCATTERED, SCATTERED, SCATTERED } };
	float sum = 0;
	if (j >= e.C)
		return;
	for (size_t row = slab * rows / gridDim.y;
		row < (slab + 1) * rows / gridDim.y; row++) {
		float x[1];
		compute_values<MOST_OPERANDS>(x, e, e.op, apart, row * e.C + j);
		sum = __fadd_rn(sum, x[0]);
	}
	partial[slab * e.C + j] = sum;
}

static void fold_columns(Device *d, const Elementary &e)
{
	const size_t slabs = row_slabs(e.n / e.C, e.C);
	Array partial = scratch(d, slabs * e.C, "sums of columns");
	fold_columns_kernel<<<dim3(blocks_for(e.C, MAP_THREADS), (unsigned)slabs),
		MAP_THREADS, 0, cuda_stream(d)>>>((float *)partial.at, e);
	LAUNCHED();
	cuda_sum_rows(d, e.y, 1, (const float *)partial.at, slabs, e.C);
	device_free(d, partial.at);
}

extern "C" void cuda_elementary(Device *d, const Elementary *e)
{
	switch (e->fold) {
	case FOLD_NONE:    map_opcode(d, *e); break;
	case FOLD_COLUMNS: fold_columns(d, *e); break;
	default:           fold_rows(d, *e); break;
	}
}
