/* mma.cuh: matmuls of 16 x 16 blocks on tensor cores, in a warp's registers */
#ifndef OPS_CUDA_MMA_CUH
#define OPS_CUDA_MMA_CUH

#include "ops/cuda/common.cuh"

/* a thread's part of 16 x 16 accumulators of a warp: at[j][0] and [1] are in row
 * lane / 4 and in columns 8 j + 2 (lane % 4) and the next; at[j][2] and [3] are 8
 * rows below */
struct MmaBlock {
	float at[2][4];
};

// wrap the instructions of the tensor cores
#define MMA(T, SHAPE, FORMAT)                                                 \
__device__ inline void mma(float (&c)[4], const unsigned (&a)[4],             \
	const unsigned (&b)[2], T)                                                \
{                                                                             \
	asm("mma.sync.aligned." SHAPE ".row.col.f32." FORMAT "." FORMAT ".f32 "   \
		"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"     \
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                      \
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));  \
}
MMA(bf16, "m16n8k16", "bf16")
MMA(fp16, "m16n8k16", "f16")
MMA(float, "m16n8k8", "tf32")

/* loads four 8 x 8 matrices of 16-bit elements; lane i gives the address of row
 * i % 8 of matrix i / 8 */
template <bool TRANSPOSED>
__device__ inline void ldmatrix(unsigned (&x)[4], const void *row)
{
	const unsigned at = (unsigned)__cvta_generic_to_shared(row);
	if (TRANSPOSED)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
			"{%0, %1, %2, %3}, [%4];"
			: "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
			"{%0, %1, %2, %3}, [%4];"
			: "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
}

// multiply blocks of 16-bit elements
/* operands of 16-bit elements; `stride`: elements from one row of a tile to the
 * next */
template <class T> struct Operands16 {
	using Stored = T;
	static constexpr bool exact = false;
	struct A { unsigned at[4]; };
	struct B { unsigned at[2][2]; };

	// load operand A, the rows of a tile
	static __device__ A rows(const T *tile, int stride)
	{
		const int lane = threadIdx.x % 32;
		A a;
		ldmatrix<false>(a.at, tile + lane % 16 * stride + lane / 16 * 8);
		return a;
	}
	// load operand B, the transpose of a tile
	static __device__ B columns(const T *tile, int stride)
	{
		const int lane = threadIdx.x % 32, row = lane / 16 * 8 + lane % 8;
		unsigned x[4];
		ldmatrix<false>(x, tile + row * stride + lane / 8 % 2 * 8);
		return { { { x[0], x[1] }, { x[2], x[3] } } };
	}
	// load operand B, a tile as it stands
	static __device__ B across(const T *tile, int stride)
	{
		const int lane = threadIdx.x % 32;
		unsigned x[4];
		ldmatrix<true>(x, tile + lane % 16 * stride + lane / 16 * 8);
		return { { { x[0], x[1] }, { x[2], x[3] } } };
	}
	// round accumulators to operand A, and multiply
	static __device__ A from(const MmaBlock &c)
	{
		A a;
		#pragma unroll
		for (int i = 0; i < 4; i++)
			store((T *)&a.at[i],
				*(const float (*)[2])&c.at[i / 2][i % 2 * 2]);
		return a;
	}
	static __device__ void multiply(MmaBlock &c, const A &a, const B &b)
	{
		#pragma unroll
		for (int j = 0; j < 2; j++)
			mma(c.at[j], a.at, b.at[j], T());
	}
};

// multiply blocks of fp32 elements
/* operands of fp32 elements, each the sum of PARTS numbers in TF32 but for its
 * last bits */
template <int PARTS> struct OperandsTf32 {
	using Stored = float;
	static constexpr bool exact = PARTS > 1;
	struct A { unsigned at[PARTS][2][4]; };
	struct B { unsigned at[PARTS][2][2][2]; };

	// split an element into parts of TF32
	template <class Put> static __device__ void split(float x, Put put)
	{
		#pragma unroll
		for (int p = 0; p < PARTS - 1; p++) {
			const unsigned high = __float_as_uint(x) & 0xffffe000;
			put(p, high);
			x -= __uint_as_float(high);
		}
		put(PARTS - 1, __float_as_uint(x));
	}
	// load operands along the rows of a tile, and split them
	static __device__ A rows(const float *tile, int stride)
	{
		const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;
		A a;
		#pragma unroll
		for (int i = 0; i < 8; i++)
			split(tile[(row + i % 2 * 8) * stride + column + i / 2 * 4],
				[&](int p, unsigned x) { a.at[p][i / 4][i % 4] = x; });
		return a;
	}
	static __device__ B columns(const float *tile, int stride)
	{
		const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;
		B b;
		#pragma unroll
		for (int i = 0; i < 8; i++)
			split(tile[(row + i / 4 * 8) * stride + column + i % 4 * 4],
				[&](int p, unsigned x) { b.at[p][i / 4][i / 2 % 2][i % 2] = x; });
		return b;
	}
	// load operand B across a tile, and convert accumulators, with columns permuted
	static __device__ B across(const float *tile, int stride)
	{
		const int column = threadIdx.x % 32 / 4, row = threadIdx.x % 4 * 2;
		B b;
		#pragma unroll
		for (int i = 0; i < 8; i++)
			split(tile[(row + i / 2 % 2 * 8 + i % 2) * stride + column
				+ i / 4 * 8],
				[&](int p, unsigned x) { b.at[p][i / 4][i / 2 % 2][i % 2] = x; });
		return b;
	}
	static __device__ A from(const MmaBlock &c)
	{
		A a;
		#pragma unroll
		for (int i = 0; i < 8; i++)
			split(c.at[i / 4][i % 2 * 2 + i / 2 % 2],
				[&](int p, unsigned x) { a.at[p][i / 4][i % 4] = x; });
		return a;
	}
	// multiply by parts, the smallest terms first
	/* adds the smallest terms first, and leaves out low times low */
	static __device__ void multiply(MmaBlock &c, const A &a, const B &b)
	{
		#pragma unroll
		for (int part = PARTS - 1; part >= 0; part--)
			#pragma unroll
			for (int p = 0; p <= part; p++)
				#pragma unroll
				for (int i = 0; i < 4; i++)
					mma(c.at[i % 2], a.at[p][i / 2],
						b.at[part - p][i % 2][i / 2], float());
	}
};

// choose the class of operands for a type
/* the class of operands for elements of a type */
template <Type TYPE> struct OperandsOf;
template <> struct OperandsOf<FP32> { using OperandClass = OperandsTf32<2>; };
template <> struct OperandsOf<TF32> { using OperandClass = OperandsTf32<1>; };
template <> struct OperandsOf<BF16> { using OperandClass = Operands16<bf16>; };
template <> struct OperandsOf<FP16> { using OperandClass = Operands16<fp16>; };

#endif
