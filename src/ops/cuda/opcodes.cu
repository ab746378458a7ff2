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
__device__ inline size_t place(const Index &x, size_t i)
{
	size_t at = 0;
	for (int k = 0; k < x.n; k++) {
		const Term t = x.term[k];
		const size_t whole = t.div == 1 ? i : i / t.div;
		at += (t.mod ? whole % t.mod : whole) * t.stride;
	}
	return at;
}

__device__ inline float one(const Operand &x, size_t i)
{
	float value[1];
	size_t at = place(x.at, i);
	switch (x.kind) {
	case NUMBER:  return (float)x.number;
	case AT_MOST: return at <= place(x.than, i);
	case EQUALS:  return at == (size_t)x.ints[place(x.than, i)];
	default:      break;
	}
	load(value, x.a, x.ints ? at + x.ints[i] : at);
	return value[0];
}

/* how the elements of a pack lie */
typedef enum { NEIGHBOURS, ALIKE, APART } Lie;

static Lie lies(const Operand *x)
{
	int neighbours = 0;
	bool aligned = true;
	if (x->kind == NUMBER)
		return ALIKE;
	if (x->kind != MEMORY || x->ints)
		return APART;
	for (int k = 0; k < x->at.n; k++) {
		const Term *t = &x->at.term[k];
		if (t->div == 1 && t->stride == 1 && t->mod % PACK == 0)
			neighbours++;
		else if (t->div % PACK != 0)
			return APART;
		aligned &= t->div == 1 || t->stride % PACK == 0;
	}
	if (neighbours == 0)
		return ALIKE;
	return neighbours == 1 && aligned && packs(x->a, PACK) ? NEIGHBOURS : APART;
}

typedef struct Lies { Lie of[MOST_OPERANDS]; } Lies;

/* may all operands in memory be loaded in packs? */
static bool in_packs(const Elementary *e, Lies *lie)
{
	bool all = true;
	for (int k = 0; k < MOST_OPERANDS; k++) {
		const Operand *x = &e->in[k];
		lie->of[k] = k < opcode_operands(e->op) ? lies(x) : ALIKE;
		all = all && (x->kind != MEMORY || lie->of[k] != APART);
	}
	return all;
}

template <int N>
__device__ inline void load_operand(float (&x)[N], const Operand &from, Lie lie,
	size_t i)
{
	if (lie == NEIGHBOURS) {
		load(x, from.a, place(from.at, i));
		return;
	}
	#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = k > 0 && lie == ALIKE ? x[0] : one(from, i + k);
}

template <int OPERANDS, int N>
__device__ inline void values(float (&y)[N], const Elementary &e, int op,
	const Lies &lie, size_t i)
{
	float in[MOST_OPERANDS][N] = { { 0 } };
	#pragma unroll
	for (int k = 0; k < OPERANDS; k++)
		load_operand(in[k], e.in[k], lie.of[k], i);
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
	Lies lie)
{
	size_t i = (blockIdx.x * (size_t)MAP_THREADS + threadIdx.x) * N;
	if (e.skip && *e.skip)
		return;
	if (N > 1 && i + N <= e.n) {
		float y[N];
		values<OPERANDS>(y, e, OP, lie, i);
		store(e.y, place(e.out, i), y);
		return;
	}
	for (const size_t end = i + N; i < end && i < e.n; i++) {
		float y[1];
		values<OPERANDS>(y, e, OP, Lies{ { APART, APART, APART } }, i);
		store(e.y, place(e.out, i), y);
	}
}

template <int OP, int OPERANDS> void map_by(Device *d, const Elementary &e)
{
	Lies lie;
	const bool neighbours = e.out.n == 1 && e.out.term[0].stride == 1
		&& packs(e.y, PACK);
	if (in_packs(&e, &lie) && neighbours)
		map_opcode_kernel<OP, OPERANDS, PACK>
			<<<blocks_for(e.n, PACK * MAP_THREADS), MAP_THREADS, 0,
			cuda_stream(d)>>>(e, lie);
	else
		map_opcode_kernel<OP, OPERANDS, 1>
			<<<blocks_for(e.n, MAP_THREADS), MAP_THREADS, 0,
			cuda_stream(d)>>>(e, lie);
	LAUNCHED();
}

static void map_opcode(Device *d, const Elementary &e)
{
	switch (e.op) {
#define OPCODE(NAME, OPERANDS, FORMULA) \
	case E_##NAME: map_by<E_##NAME, OPERANDS>(d, e); break;
#include "ops/opcodes.h"
#undef OPCODE
	default: assert(!"an opcode");
	}
}

// fold rows of any opcode
/* y[row] = the sum or maximum of a row of C; bytes: those of the operands
 * grid: rows / blockDim.y, block: row_threads(C), 1 or 8 */
template <bool WIDE>
__global__ __launch_bounds__(MOST_THREADS) void fold_rows_kernel(Elementary e,
	Lies lie, bool sum)
{
	const size_t row = (size_t)blockIdx.x * blockDim.y + threadIdx.y;
	float result = sum ? 0 : -INFINITY;
	for (size_t j = threadIdx.x * PACK; j < e.C && row < e.n / e.C;
		j += blockDim.x * PACK) {
		float x[PACK];
		if (WIDE)
			values<MOST_OPERANDS>(x, e, e.op, lie, row * e.C + j);
		#pragma unroll
		for (int k = 0; k < PACK; k++) {
			float one[1] = { x[k] };
			if (!WIDE && j + k < e.C)
				values<MOST_OPERANDS>(one, e, e.op, lie, row * e.C + j + k);
			if (WIDE || j + k < e.C)
				result = sum ? __fadd_rn(result, one[0]) : fmaxf(result, one[0]);
		}
	}
	if (blockDim.x == 32)
		result = sum ? warp_sum(result) : warp_max(result);
	else
		result = sum ? block_sum(result) : block_max(result);
	if (threadIdx.x == 0 && row < e.n / e.C) {
		float y[1] = { result };
		store(e.y, place(e.out, row), y);
	}
}

static void fold_rows(Device *d, const Elementary &e)
{
	Lies lie;
	const unsigned T = row_threads(e.C);
	const dim3 threads(T, T == 32 ? 8 : 1);
	const bool wide = in_packs(&e, &lie) && e.C % PACK == 0;
	const auto kernel = wide ? fold_rows_kernel<true> : fold_rows_kernel<false>;
	if (!wide)
		lie = { { APART, APART, APART } };
	kernel<<<blocks_for(e.n / e.C, threads.y), threads, 0, cuda_stream(d)>>>(e,
		lie, e.fold == FOLD_SUM);
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
	const Lies apart = { { APART, APART, APART } };
	float sum = 0;
	if (j >= e.C)
		return;
	for (size_t row = slab * rows / gridDim.y;
		row < (slab + 1) * rows / gridDim.y; row++) {
		float x[1];
		values<MOST_OPERANDS>(x, e, e.op, apart, row * e.C + j);
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
