/* split_fp16.cuh: fp32 as split fp16 (hi + lo), and their matmuls on
 * Hopper's tensor cores
 * x = unit (high + low): high has 11 bits of x / unit, low the next 11, signs
 * included; unit is a power of 2, one for each tile of 64 rows, so that the
 * largest of the tile is below 2^15 units. What is lost is at most 2^-23 of a
 * number, or 2^-39 of the tile's largest. Of a matmul's four parts low low is
 * left out: 2^-22 at most, and of either sign. */
#ifndef OPS_CUDA_SPLIT_FP16_CUH
#define OPS_CUDA_SPLIT_FP16_CUH

#include "ops/cuda/hopper.cuh"
#include "ops/cuda/mma_tiles.cuh"

/* rows of a tile, and of the accumulators of a warpgroup */
enum { ROWS = 64 };

// lay hi and lo out in a tile
/* a tile (2, 64, D): two parts, hi and lo, each in blocks of up to 64 elements
 * of its rows, a block as wgmma reads it */
template <int D> struct SplitTile {
	static constexpr int REST = D % 64 ? D % 64 : 64;   /* of the last block */
	static constexpr int BLOCK = ROWS * 128, PART_NBYTES = ROWS * D * 2,
		TILE = 2 * PART_NBYTES;                         /* bytes */
	using Whole = Swizzle<64>;
	using Last = Swizzle<REST>;
	static_assert(D % 16 == 0 && PART_NBYTES % 1024 == 0,
		"blocks start at 1024");

	/* byte of a part where element `column` of `row` stands */
	__host__ __device__ static unsigned at(int row, int column)
	{
		const int byte = column % 64 * 2;
		return column / 64 * BLOCK + (column / 64 < D / 64
			? Whole::at(row, byte) : Last::at(row, byte));
	}
};

// split fp32 into hi and lo
/* the unit (`one`) of a tile, and its inverse, both powers of 2 */
struct SplitUnit {
	float one, inverse;
};

/* the unit in which numbers up to `largest` are below 2^15 */
__device__ __forceinline__ SplitUnit unit_for(float largest)
{
	/* at least 2^-100, so that units and their inverses are normal */
	const unsigned power = max(__float_as_uint(largest) & 0x7f800000,
		27u << 23);
	return { __uint_as_float(power - (14u << 23)),
		__uint_as_float((268u << 23) - power) };
}

/* splits x and y, which are in units, into hi and lo; x into the lower halves */
__device__ __forceinline__ void split(unsigned &high, unsigned &low, float x,
	float y)
{
	const __half2 h = __floats2half2_rn(x, y);
	const float2 back = __half22float2(h);
	const __half2 l = __floats2half2_rn(x - back.x, y - back.y);
	high = *(const unsigned *)&h;
	low = *(const unsigned *)&l;
}

/* splits accumulators into hi and lo of operand A */
__device__ __forceinline__ void split_accumulators(unsigned (&high)[16],
	unsigned (&low)[16], const float (&s)[32])
{
	#pragma unroll
	for (int i = 0; i < 16; i++)
		split(high[i], low[i], s[2 * i], s[2 * i + 1]);
	pin(high);
	pin(low);
}

// multiply from zero, with operand A in registers
/* starts d (64 x N) = a b, + d if `add`; a: 64 x 16 in registers, b: 16 rows of N
 * elements */
template <int N> struct WgmmaRs;

/* R ... X: the numbers of the operands after the N / 2 of d */
#define WGMMA_RS(N, R, S, U, V, W, X)                                         \
template <> struct WgmmaRs<N> {                                               \
	static __device__ __forceinline__ void multiply(float *d,                 \
		const unsigned *a, uint64_t b, int add)                               \
	{                                                                         \
		asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" #X ", 0;\n\t"   \
			"wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16"          \
			" {" NAMES##N "}, {%" #R ", %" #S ", %" #U ", %" #V "}, %" #W     \
			", p, 1, 1, 1;\n\t}"                                              \
			: ACC##N : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),    \
			"r"(add));                                                        \
	}                                                                         \
};
WGMMA_RS(16, 8, 9, 10, 11, 12, 13)
WGMMA_RS(32, 16, 17, 18, 19, 20, 21)
WGMMA_RS(64, 32, 33, 34, 35, 36, 37)
WGMMA_RS(128, 64, 65, 66, 67, 68, 69)
#undef WGMMA_RS

// multiply tiles of split fp16
/* the descriptor of columns 16 i ... of a part's rows */
template <int D> __device__ __forceinline__ uint64_t rows_descriptor(
	unsigned part_at, int i)
{
	using P = SplitTile<D>;
	const unsigned at = part_at + i / 4 * P::BLOCK + i % 4 * 32;
	return i / 4 < D / 64 ? smem_descriptor(at, 16, 8 * P::Whole::WIDTH,
		P::Whole::MODE)
		: smem_descriptor(at, 16, 8 * P::Last::WIDTH, P::Last::MODE);
}

/* starts s = a b^T in the units of both; a, b: tiles in shared memory */
template <int D>
__device__ __forceinline__ void start_matmul_nt(float (&s)[32], unsigned a,
	unsigned b)
{
	wgmma_fence();
	#pragma unroll
	for (int term = 0; term < 3; term++)
		#pragma unroll
		for (int i = 0; i < D / 16; i++)
			Wgmma<64, fp16>::ss<0, 0>(s,
				rows_descriptor<D>(a + (term == 0) * SplitTile<D>::PART_NBYTES,
				i),
				rows_descriptor<D>(b + (term == 1) * SplitTile<D>::PART_NBYTES,
				i), term + i > 0);
	wgmma_commit();
}

/* starts t = p b, in b's unit; p: 64 x 64 in registers, b: a tile */
template <int D>
__device__ __forceinline__ void start_matmul_nn(float (&t)[D / 2],
	const unsigned (&high)[16], const unsigned (&low)[16], unsigned b)
{
	using P = SplitTile<D>;
	using W = typename P::Whole;
	using L = typename P::Last;
	constexpr int WHOLE = D / 64 * 64, LAST = D - WHOLE;
	wgmma_fence();
	#pragma unroll
	for (int term = 0; term < 3; term++)
		#pragma unroll
		for (int i = 0; i < ROWS / 16; i++) {
			const unsigned *a = (term == 0 ? low : high) + 4 * i;
			const unsigned part_at = b + (term == 1) * P::PART_NBYTES;
			// multiply 16 columns of p by 16 rows of hi or lo
			if constexpr (WHOLE > 0)
				WgmmaRs<WHOLE>::multiply(t, a, smem_descriptor(part_at + i * 16 * W::WIDTH,
					P::BLOCK, 8 * W::WIDTH, W::MODE), term + i > 0);
			if constexpr (LAST > 0)
				WgmmaRs<LAST>::multiply(t + WHOLE / 2, a,
					smem_descriptor(part_at + WHOLE / 64 * P::BLOCK + i * 16 * L::WIDTH,
					P::BLOCK, 8 * L::WIDTH, L::MODE), term + i > 0);
		}
	wgmma_commit();
}

// multiply tiles of split fp16
/* waits until all matmuls are done; high, low: their operand A */
template <int R>
__device__ __forceinline__ void wait_matmul(float (&t)[R], unsigned (&high)[16],
	unsigned (&low)[16])
{
	wgmma_wait<0>();
	pin(t);
	pin(high);
	pin(low);
}
#endif
