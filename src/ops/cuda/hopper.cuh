/* hopper.cuh: what Hopper's TMA and tensor cores ask for (sm_90a):
 * barriers that count bytes, tiles copied by tensor maps, matmuls of
 * warpgroups. PTX ISA: mbarrier, cp.async.bulk, wgmma, setmaxnreg
 * A kernel that uses these has a body only where __CUDA_ARCH_FEAT_SM90_ALL is
 * defined: it compiles for other GPUs, but is not to be called there */
#ifndef OPS_CUDA_HOPPER_CUH
#define OPS_CUDA_HOPPER_CUH

#include <cuda.h>                       /* types only: CUtensorMap */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <type_traits>

enum { WARPGROUP = 128 };               /* threads */

__device__ inline unsigned smem_address(const void *p)
{
	return (unsigned)__cvta_generic_to_shared(p);
}

// wait for threads and for bytes
typedef uint64_t Barrier;

/* a phase ends after so many arrivals, when all expected bytes are there */
__device__ inline void barrier_init(Barrier *b, int arrivals)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
		:: "r"(smem_address(b)), "r"(arrivals) : "memory");
}

/* makes initialised barriers visible to TMA; __syncthreads() must follow */
__device__ inline void fence_barrier_init()
{
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void barrier_arrive(Barrier *b)
{
	asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];"
		:: "r"(smem_address(b)) : "memory");
}

/* arrives, and lets the phase also wait for so many bytes */
__device__ inline void barrier_expect_tx(Barrier *b, int nbytes)
{
	asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, "
		"[%0], %1;" :: "r"(smem_address(b)), "r"(nbytes) : "memory");
}

__device__ inline bool barrier_try_wait(Barrier *b, unsigned parity)
{
	unsigned passed;
	asm volatile("{\n\t.reg .pred p;\n\t"
#if __CUDA_ARCH__ >= 900
		"mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n\t"
#else
		"mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\t"
#endif
		"selp.u32 %0, 1, 0, p;\n\t}"
		: "=r"(passed) : "r"(smem_address(b)), "r"(parity) : "memory");
	return passed;
}

/* waits until the phase of this parity has ended */
__device__ inline void barrier_wait(Barrier *b, unsigned parity)
{
	while (!barrier_try_wait(b, parity))
		;
}

/* the same, of a phase that other blocks of the cluster end */
__device__ inline void barrier_wait_cluster(Barrier *b, unsigned parity)
{
	unsigned passed = 0;
	while (!passed)
		asm volatile("{\n\t.reg .pred p;\n\t"
			"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
			"p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
			: "=r"(passed) : "r"(smem_address(b)), "r"(parity) : "memory");
}

/* a position in a ring of N stages, and the parity of the present round */
template <int N> struct RingPosition {
	int at = 0;
	unsigned parity = 0;
	template <int BY = 1> __device__ void step()
	{
		static_assert(BY <= N, "within a round");
		const bool round = at + BY >= N;
		at += round ? BY - N : BY;
		parity ^= round;
	}
	__device__ void skip(int stages)
	{
		parity ^= (at + stages) / N & 1;
		at = (at + stages) % N;
	}
};

/* waits at a named barrier (0: that of __syncthreads) for `threads` to arrive */
__device__ inline void named_barrier_sync(int number, int threads)
{
	asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}

/* arrives at a named barrier, and does not wait */
__device__ inline void named_barrier_arrive(int number, int threads)
{
	asm volatile("bar.arrive %0, %1;" :: "r"(number), "r"(threads) : "memory");
}

// start copies of boxes and of bytes
/* hints to the L2 cache, in its own encoding: to keep, to let pass */
constexpr uint64_t EVICT_LAST = 0x14F0000000000000,
	EVICT_FIRST = 0x12F0000000000000;

__device__ inline void prefetch_tensormap(const CUtensorMap *map)
{
	asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
}

/* starts the copy of the box at (d, t, h, b) to shared memory; its bytes are
 * counted by `full` */
__device__ inline void tma_load(unsigned to, const CUtensorMap *map,
	Barrier *full, uint64_t hint, int d, int t, int h, int b)
{
	asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile"
		".mbarrier::complete_tx::bytes.L2::cache_hint "
		"[%0], [%1, {%3, %4, %5, %6}], [%2], %7;"
		:: "r"(to), "l"(map), "r"(smem_address(full)), "r"(d), "r"(t),
		"r"(h), "r"(b), "l"(hint) : "memory");
}

/* starts the copy of a box to the tensor; nothing outside of it is written */
__device__ inline void tma_store(const CUtensorMap *map, unsigned from,
	int d, int t, int h, int b)
{
	asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
		"[%0, {%2, %3, %4, %5}], [%1];"
		:: "l"(map), "r"(from), "r"(d), "r"(t), "r"(h), "r"(b)
		: "memory");
}

/* starts the copy of nbytes, a multiple of 16, to shared memory; `full` counts
 * them */
__device__ inline void bulk_load(unsigned to, const void *from, int nbytes,
	Barrier *full)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier"
		"::complete_tx::bytes [%0], [%1], %2, [%3];"
		:: "r"(to), "l"(from), "r"(nbytes), "r"(smem_address(full)) : "memory");
}

/* starts the copy of nbytes, a multiple of 16, from shared memory */
__device__ inline void bulk_store(void *to, unsigned from, int nbytes)
{
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
		:: "l"(to), "r"(from), "r"(nbytes) : "memory");
}

/* starts to add floats in shared memory to those in global memory */
__device__ inline void bulk_reduce_add(float *to, unsigned from, int nbytes)
{
	asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 "
		"[%0], [%1], %2;" :: "l"(to), "r"(from), "r"(nbytes) : "memory");
}

/* makes a group of this thread's stores and adds since the last call */
__device__ inline void tma_store_commit()
{
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* waits until this thread's groups but the N latest have left shared memory */
template <int N> __device__ inline void tma_store_wait_read()
{
	asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory");
}

/* waits until all of this thread's groups are in global memory */
__device__ inline void tma_store_wait()
{
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* lets wgmma and TMA see, after the next barrier, what this thread wrote to
 * shared memory */
__device__ inline void fence_proxy_async()
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* orders TMA's accesses of global memory after this thread's own accesses before
 * the fence, and before those after it */
__device__ inline void fence_proxy_async_global()
{
	asm volatile("fence.proxy.async.global;" ::: "memory");
}

// swizzle the rows of a tile
/* a tile of rows x D 16-bit elements lies in blocks, one after the other, of
 * rows x WIDTH bytes. In these, chunks of 16 bytes are permuted: */
template <int D> struct Swizzle {
	static constexpr int WIDTH = D >= 64 ? 128 : 2 * D;
	static constexpr int BLOCKS = (2 * D + WIDTH - 1) / WIDTH;
	static constexpr int ROW = BLOCKS * WIDTH;      /* bytes of a row in all */
	static constexpr int MODE = WIDTH == 128 ? 1 : WIDTH == 64 ? 2 : 3;
	static_assert(WIDTH == 128 || WIDTH == 64 || WIDTH == 32, "as TMA has it");

	/* byte in a block whose address is a multiple of 1024 */
	__host__ __device__ static unsigned at(unsigned row, unsigned byte)
	{
		const unsigned a = row * WIDTH + byte;
		return a ^ ((a >> 7) % (WIDTH / 16)) << 4;
	}
};

// describe an operand in shared memory
/* the descriptor of an operand that starts at `at`; next_block: bytes to the next
 * block along M or N (not used where K is contiguous); next_rows: bytes from 8
 * rows to the next 8 */
__device__ inline uint64_t smem_descriptor(unsigned at, unsigned next_block,
	unsigned next_rows, int mode)
{
	return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(next_block >> 4) << 16
		| (uint64_t)(next_rows >> 4) << 32 | (uint64_t)mode << 62;
}

// start wgmma, and wait for it
/* must precede the first matmul, and follow any access to registers of A or D */
__device__ inline void wgmma_fence()
{
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* makes a group of the matmuls since the last call */
__device__ inline void wgmma_commit()
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* waits until all groups of matmuls but the N latest are done */
template <int N> __device__ inline void wgmma_wait()
{
	asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory");
}

/* keeps the compiler from moving uses of x across this place */
template <int N> __device__ __forceinline__ void pin(float (&x)[N])
{
	#pragma unroll
	for (int i = 0; i < N; i++)
		asm volatile("" : "+f"(x[i]) :: "memory");
}

template <int N> __device__ __forceinline__ void pin(unsigned (&x)[N])
{
	#pragma unroll
	for (int i = 0; i < N; i++)
		asm volatile("" : "+r"(x[i]) :: "memory");
}

// multiply 64 rows by N columns
/* d (64 x N, registers) = a b + d: lane l of warp w has d[4 j + 2 low + i] in
 * row 16 w + l / 4 + 8 low and in column 8 j + 2 (l % 4) + i
 * ss<ROWS_A, ROWS_B>: d = a b (+ d); is it M, is it N that is contiguous?
 *     (otherwise K)
 * rs: d += a b, a in registers, N contiguous in b */
template <int N, class T> struct Wgmma;

// list the registers of accumulators
/* eight of d's registers as operands, and their names in the text */
#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]),     \
	"+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define ACC16 D8(0)
#define ACC32 ACC16, D8(8)
#define ACC64 ACC32, D8(16), D8(24)
#define ACC80 ACC64, D8(32)
#define ACC128 ACC80, D8(40), D8(48), D8(56)
#define NAMES16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define NAMES32 NAMES16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define NAMES64 NAMES32 ", %16, %17, %18, %19, %20, %21, %22, %23"            \
	", %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES80 NAMES64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define NAMES128 NAMES80 ", %40, %41, %42, %43, %44, %45, %46, %47"           \
	", %48, %49, %50, %51, %52, %53, %54, %55"                                \
	", %56, %57, %58, %59, %60, %61, %62, %63"

// write the text of wgmma
#define WGMMA(N, T, TYPE, R, S, U, V, W)                                      \
template <> struct Wgmma<N, T> {                                              \
	template <int ROWS_A, int ROWS_B>                                         \
	static __device__ __forceinline__ void ss(float (&d)[N / 2],              \
		uint64_t a, uint64_t b, int add)                                      \
	{                                                                         \
		asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" #U ", 0;\n\t"   \
			"wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE   \
			" {" NAMES##N "}, %" #R ", %" #S ", p, 1, 1, %" #V ", %" #W       \
			";\n\t}"                                                          \
			: ACC##N : "l"(a), "l"(b), "r"(add), "n"(ROWS_A), "n"(ROWS_B));   \
	}                                                                         \
	static __device__ __forceinline__ void rs(float (&d)[N / 2],              \
		const unsigned *a, uint64_t b)                                        \
	{                                                                         \
		asm volatile("{\n\t.reg .pred p;\n\tsetp.eq.b32 p, 0, 0;\n\t"         \
			"wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE   \
			" {" NAMES##N "}, {%" #R ", %" #S ", %" #U ", %" #V "}, %" #W     \
			", p, 1, 1, 1;\n\t}"                                              \
			: ACC##N : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));   \
	}                                                                         \
};
#define WGMMA_OF(N, ...)                                                   \
	WGMMA(N, __nv_bfloat16, "bf16", __VA_ARGS__)                           \
	WGMMA(N, __half, "f16", __VA_ARGS__)
WGMMA_OF(16, 8, 9, 10, 11, 12)
WGMMA_OF(32, 16, 17, 18, 19, 20)
WGMMA_OF(64, 32, 33, 34, 35, 36)
WGMMA_OF(80, 40, 41, 42, 43, 44)
WGMMA_OF(128, 64, 65, 66, 67, 68)
#undef WGMMA_OF
#undef WGMMA

// multiply tiles by wgmma
/* starts s (64 x N) = a b^T, or ADD: s += a b^T; a: 64 rows of a tile of A_ROWS
 * rows, b: a tile of N rows, both of D contiguous elements */
template <class T, int D, int N, int A_ROWS, bool ADD = false>
__device__ __forceinline__ void matmul_nt(float (&s)[N / 2], unsigned a,
	unsigned b)
{
	using W = Swizzle<D>;
	const uint64_t left = smem_descriptor(a, 16, 8 * W::WIDTH, W::MODE),
		right = smem_descriptor(b, 16, 8 * W::WIDTH, W::MODE);
	#pragma unroll
	for (int i = 0; i < D / 16; i++) {
		const int block = i * 32 / W::WIDTH, byte = i * 32 % W::WIDTH;
		Wgmma<N, T>::template ss<0, 0>(s,
			left + ((block * A_ROWS * W::WIDTH + byte) >> 4),
			right + ((block * N * W::WIDTH + byte) >> 4), ADD || i > 0);
	}
}

/* starts o (64 x D) += p v; p: 64 x N in registers, v: a tile of N rows of D
 * elements; takes blocks of 16 rows from FIRST up to LAST, exclusive */
template <class T, int D, int N, int FIRST = 0, int LAST = N / 16>
__device__ __forceinline__ void matmul_add(float (&o)[D / 2],
	const unsigned (&p)[N / 4], unsigned v)
{
	using W = Swizzle<D>;
	const uint64_t b = smem_descriptor(v, N * W::WIDTH, 8 * W::WIDTH, W::MODE);
	#pragma unroll
	for (int i = FIRST; i < LAST; i++)
		Wgmma<D, T>::rs(o, p + 4 * i, b + (i * 16 * W::WIDTH >> 4));
}

/* starts q (64 x C) = s^T k; s: N rows of 64 elements, k: C columns, from the
 * start of a block, of N rows in blocks as those of D elements */
template <class T, int D, int C, int N>
__device__ __forceinline__ void matmul_tn(float (&q)[C / 2], unsigned s,
	unsigned k)
{
	using W = Swizzle<D>;
	const uint64_t left = smem_descriptor(s, N * 128, 1024, 1),
		right = smem_descriptor(k, N * W::WIDTH, 8 * W::WIDTH, W::MODE);
	#pragma unroll
	for (int i = 0; i < N / 16; i++)
		Wgmma<C, T>::template ss<1, 1>(q, left + (i * 16 * 128 >> 4),
			right + (i * 16 * W::WIDTH >> 4), i > 0);
}

// convert accumulators to operands and rows
/* x and y in 16 bits each, x in the lower half */
template <class T> __device__ __forceinline__ unsigned pack(float x, float y)
{
	unsigned both;
	if constexpr (std::is_same<T, __half>::value)
		asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;"
			: "=r"(both) : "f"(y), "f"(x));
	else
		asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;"
			: "=r"(both) : "f"(y), "f"(x));
	return both;
}

/* stores four 8 x 8 matrices of 16-bit elements, as wgmma leaves them; lane i
 * gives the address of row i % 8 of matrix i / 8 */
__device__ __forceinline__ void stmatrix(unsigned at, unsigned a,
	unsigned b, unsigned c, unsigned d)
{
	asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], "
		"{%1, %2, %3, %4};"
		:: "r"(at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// pass accumulators on
/* moves 16 or 8 bytes between registers and shared memory */
__device__ __forceinline__ void store_four(unsigned to, const float *x)
{
	asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
		:: "r"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]) : "memory");
}

__device__ __forceinline__ void load_four(float (&x)[4], unsigned from)
{
	asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
		: "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
		: "r"(from) : "memory");
}

__device__ __forceinline__ void load_two(float (&x)[2], unsigned from)
{
	asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
		: "=f"(x[0]), "=f"(x[1]) : "r"(from) : "memory");
}

/* stores R floats of each of a warpgroup's 128 threads to shared memory */
template <int R>
__device__ __forceinline__ void store_accumulators(unsigned to,
	const float (&x)[R])
{
	#pragma unroll
	for (int i = 0; i < R; i += 4)
		store_four(to + i * 512 + threadIdx.x % WARPGROUP * 16, &x[i]);
}

/* calls f(i, x) for each of the R floats x that store_accumulators has stored for
 * this thread */
template <int R, class Each>
__device__ __forceinline__ void with_accumulators(unsigned from, Each f)
{
	#pragma unroll
	for (int i = 0; i < R; i += 4) {
		float x[4];
		load_four(x, from + i * 512 + threadIdx.x % WARPGROUP * 16);
		#pragma unroll
		for (int k = 0; k < 4; k++)
			f(i + k, x[k]);
	}
}

// redistribute registers
/* the warpgroup gives registers back, or waits for more, to have N a thread */
template <int N> __device__ inline void setmaxnreg_dec()
{
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N));
}

template <int N> __device__ inline void setmaxnreg_inc()
{
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N));
}

// launch dependent kernels early
/* waits until the kernels before have ended and their writes are visible */
__device__ inline void griddepcontrol_wait()
{
	asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* lets the next kernel of the stream start; it must call griddepcontrol_wait() */
__device__ inline void griddepcontrol_launch_dependents()
{
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
#endif
