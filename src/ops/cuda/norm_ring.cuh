/* norm_ring.cuh: rows that come through shared memory, each to a block or to a
 * cluster of blocks */
#ifndef OPS_CUDA_NORM_RING_CUH
#define OPS_CUDA_NORM_RING_CUH

#include "ops/cuda/hopper.cuh"
#include "ops/cuda/norm_common.cuh"

// find a block's part of the rows
/* rows first, first + step, ... and of each the elements begin ... begin + n - 1;
 * the blocks of a cluster share a row, `most` elements to a block */
struct RowPart {
	unsigned blocks = 1, rank = 0;      /* of the cluster */
	size_t first, step, begin, n;

	__device__ __forceinline__ RowPart(size_t C, size_t most)
	{
#if __CUDA_ARCH__ >= 900
		asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
		asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
		first = blockIdx.x / blocks, step = gridDim.x / blocks;
		begin = rank * most;
		n = begin >= C ? 0 : C - begin < most ? C - begin : most;
	}
};

/* calls f(k, p) for each pack of this thread, the k-th, that begins at element p
 * of n */
template <int N, int PER, class F>
__device__ __forceinline__ void each_pack(size_t n, F f)
{
	#pragma unroll
	for (int k = 0; k < PER; k++) {
		const size_t p = ((size_t)k * blockDim.x + threadIdx.x) * N;
		if (p < n)
			f(k, p);
	}
}

// read the packs of a row
/* packs of a row, as they lie in a slot; zeros beyond its end. All are read
 * before any is used */
template <class T, int N, int PER> struct Packs {
	using Word = typename WordOf<N * sizeof(T)>::type;
	Word at[PER];

	__device__ __forceinline__ Packs(const T *row, size_t n)
	{
		#pragma unroll
		for (int k = 0; k < PER; k++)
			at[k] = Word();
		each_pack<N, PER>(n, [&](int k, size_t p) {
			at[k] = *(const Word *)(row + p);
		});
	}

	__device__ __forceinline__ void widen_to(float (&x)[N], int k) const
	{
		const auto pack = *(const Pack<T, N> *)&at[k];
		#pragma unroll
		for (int i = 0; i < N; i++)
			x[i] = widen(pack.at[i]);
	}
};

// copy rows to the slots of a ring
enum { NORM_SLOTS = 4 };                /* at most */

/* starts to copy N elements to shared memory; two bytes are copied at once */
template <int N, class T>
__device__ inline void cp_async(T *to, const T *from)
{
	constexpr int NBYTES = N * sizeof(T);
	if constexpr (NBYTES == 16)
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
			:: "r"(smem_address(to)), "l"(from) : "memory");
	else if constexpr (NBYTES >= 4)
		asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
			:: "r"(smem_address(to)), "l"(from), "n"(NBYTES) : "memory");
	else
		*to = *from;
}

/* slots of nbytes; full[s]: the row of slot s is there. bulk: TMA copies a row,
 * and thread 0 asks for it; else each thread copies the packs that it reads */
template <int N, int PER> struct RowRing {
	unsigned char *at;
	Barrier *full;
	size_t nbytes;
	int slots;
	bool bulk;

	__device__ __forceinline__ void init() const
	{
		if (threadIdx.x == 0) {
			for (int s = 0; s < slots; s++)
				barrier_init(&full[s], bulk ? 1 : blockDim.x);
#if __CUDA_ARCH__ >= 900
			fence_barrier_init();
#endif
		}
		__syncthreads();
	}

	/* starts to copy n elements to byte `offset` of slot s; every thread calls */
	template <class T> __device__ __forceinline__ void copy(int s, size_t offset,
		const T *from, size_t n) const
	{
		T *to = (T *)(at + s * nbytes + offset);
#if __CUDA_ARCH__ >= 900
		if (bulk) {
			if (threadIdx.x == 0 && n > 0)
				bulk_load(smem_address(to), from, (int)(n * sizeof(T)),
					&full[s]);
			return;
		}
#endif
		each_pack<N, PER>(n, [&](int k, size_t p) {
			cp_async<N>(to + p, from + p);
		});
	}

	/* follows the copies of a row to slot s, of so many bytes */
	__device__ __forceinline__ void copied(int s, size_t nbytes) const
	{
#if __CUDA_ARCH__ >= 900
		if (bulk) {
			if (threadIdx.x == 0)
				barrier_expect_tx(&full[s], (int)nbytes);
			return;
		}
#endif
		asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];"
			:: "r"(smem_address(&full[s])) : "memory");
	}
};

// add over the threads of a row, in a block or a cluster
/* two sums of a row: this warp's are sent to every block of the cluster; where
 * a block has the row to itself, a barrier of it must follow. Rows use the two
 * halves in turn: part (2, blocks, warps), there[2] */
struct RowSums {
	float2 *part;
	Barrier *there;
	unsigned blocks, rank;

	__device__ __forceinline__ unsigned warps() const { return blockDim.x / 32; }

	__device__ __forceinline__ void init() const
	{
#if __CUDA_ARCH__ >= 900
		if (blocks == 1)
			return;
		if (threadIdx.x == 0) {
			barrier_init(&there[0], 1);
			barrier_init(&there[1], 1);
			fence_barrier_init();
		}
		asm volatile("barrier.cluster.arrive.release.aligned;\n\t"
			"barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
	}

	// send the sums of a warp, and add those of all
	/* both: the second sum is wanted, too; returns those of the warp */
	__device__ __forceinline__ float2 send(float2 x, bool both, int turn) const
	{
		const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
		float2 *mine = part + (turn * blocks + rank) * warps() + warp;
		x.x = warp_sum(x.x);
		if (both)
			x.y = warp_sum(x.y);
		if (blocks == 1 && lane == 0)
			*mine = x;
	#if __CUDA_ARCH__ >= 900
		if (blocks == 1)
			return x;
		if (threadIdx.x == 0)
			barrier_expect_tx(&there[turn],
				(int)(blocks * warps() * sizeof(float2)));
		if (lane < blocks)
			asm volatile("{\n\t.reg .b32 to, bar;\n\t"
				"mapa.shared::cluster.u32 to, %0, %2;\n\t"
				"mapa.shared::cluster.u32 bar, %1, %2;\n\t"
				"st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 "
				"[to], {%3, %4}, [bar];\n\t}"
				:: "r"(smem_address(mine)), "r"(smem_address(&there[turn])),
				"r"(lane), "f"(x.x), "f"(x.y) : "memory");
	#endif
		return x;
	}

	/* waits for the parts of all blocks, and adds them; x: this warp's; parity:
	 * of the uses of this half */
	__device__ __forceinline__ float2 sum(float2 x, bool both, int turn,
		unsigned parity) const
	{
		if (blocks * warps() == 1)
			return x;
	#if __CUDA_ARCH__ >= 900
		if (blocks > 1)
			barrier_wait_cluster(&there[turn], parity);
	#endif
		x = make_float2(0, 0);
		for (unsigned i = threadIdx.x % 32; i < blocks * warps(); i += 32) {
			const float2 of = part[turn * blocks * warps() + i];
			x.x += of.x, x.y += of.y;
		}
		x.x = warp_sum(x.x);
		if (both)
			x.y = warp_sum(x.y);
		return x;
	}
};

// walk through rows, a row ahead in its first pass
/* calls, for this block's rows, op.fetch(s, row) to start the copies to slot s,
 * op.reduce(s, row) for this thread's part of the row's sums, and
 * op.finish(s, row, sums); the row after a row is reduced before that one is
 * finished, so that the sums travel meanwhile
 * dynamic shared memory: walk_of(...).shared; slots >= 2 */
template <int N, int PER, class Op>
__device__ __forceinline__ void walk_rows(Op &op, const RowPart &mine,
	size_t rows, size_t slot_nbytes, int slots, bool bulk, bool both)
{
	extern __shared__ __align__(128) unsigned char ring_memory[];
	__shared__ Barrier full[NORM_SLOTS], there[2];
	const RowRing<N, PER> ring = { ring_memory, full, slot_nbytes, slots, bulk };
	const RowSums sums = { (float2 *)(ring_memory + slots * slot_nbytes), there,
		mine.blocks, mine.rank };
	const auto reduce = [&](int slot, unsigned parity, size_t row, int turn) {
		barrier_wait(&full[slot], parity);
		return sums.send(op.reduce(ring.at + slot * ring.nbytes, row), both,
			turn);
	};
	// start the copies of the first rows, and reduce the first
	size_t row = mine.first;
	ring.init();
	sums.init();
	for (int s = 0; s < slots && row + s * mine.step < rows; s++)
		op.fetch(ring, s, row + s * mine.step);
	int slot = 0, turn = 0;
	unsigned round = 0, uses = 0;       /* parities */
	float2 ahead = reduce(0, 0, row, 0);
	__syncthreads();
	float2 sum = sums.sum(ahead, both, 0, 0);
	for (; row < rows; row += mine.step) {
		// reduce the next row, finish this one, and fill its slot
		const int next = slot + 1 < slots ? slot + 1 : 0;
		const bool more = row + mine.step < rows;
		round ^= next == 0;
		turn ^= 1;
		uses ^= turn == 0;
		op.advance();
		if (more)
			ahead = reduce(next, round, row + mine.step, turn);
		op.finish(ring.at + slot * ring.nbytes, row, sum);
		__syncthreads();                /* every thread has read the slot */
		if (row + slots * mine.step < rows)
			op.fetch(ring, slot, row + slots * mine.step);
		if (more)
			sum = sums.sum(ahead, both, turn, uses);
		slot = next;
	}
}

// launch a walk
/* how the kernel of a plan is launched for rows with slots of so many bytes */
typedef struct WalkLaunch {
	int slots;              /* less than 2: this GPU has no such kernel */
	size_t shared;          /* bytes, of a block */
	size_t clusters;        /* or blocks, where each has a row to itself */
} WalkLaunch;

/* has this GPU clusters, and TMA? */
static inline bool has_clusters(const Device *d)
{
	return cuda_chip(d->state).major >= 9;
}

static inline WalkLaunch walk_of(const Device *d, const NormPlan &plan,
	size_t slot_nbytes)
{
	enum { RESERVED = 2048 };           /* by the driver, and for barriers */
	const size_t sums = 2 * plan.blocks * (plan.threads / 32) * sizeof(float2);
	int device = 0, most = 0;
	CUDA(cudaGetDevice(&device));
	CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
		device));
	WalkLaunch w = { 0, 0, 0 };
	if (plan.blocks == 1 || has_clusters(d))
		w.slots = norm_slots(&plan, slot_nbytes, most - RESERVED - sums);
	w.shared = w.slots * slot_nbytes + sums;
	return w;
}

/* can TMA copy rows of a, which lie so many elements apart? */
static inline bool moves_in_bulk(Array a, size_t C, size_t row)
{
	const size_t each = type_size(a.type);
	return aligned(a.at, 16) && C * each % 16 == 0 && row * each % 16 == 0;
}

/* lends f the configuration of a launch of n clusters */
template <class F> static void with_clusters(Device *d, const NormPlan &plan,
	size_t shared, size_t n, F f)
{
	cudaLaunchAttribute cluster = {};
	cluster.id = cudaLaunchAttributeClusterDimension;
	cluster.val.clusterDim.x = plan.blocks;
	cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
	cudaLaunchConfig_t c = {};
	c.gridDim = dim3(blocks_for(n * plan.blocks, 1));
	c.blockDim = dim3(plan.threads);
	c.dynamicSmemBytes = shared;
	c.stream = cuda_stream(d);
	c.attrs = &cluster;
	c.numAttrs = plan.blocks > 1;
	f(c);
}

/* clusters that run at once and share the rows equally; ring: bytes of a block's
 * rows in its slots */
template <class Kernel> static size_t walk_clusters(Device *d,
	const NormPlan &plan, Kernel kernel, const WalkLaunch &w, size_t ring,
	size_t rows)
{
	const size_t chip = cuda_multiprocessors(d);
	const size_t worth = norm_blocks(&plan, ring, rows, chip);
	CUDA(cudaFuncSetAttribute(kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, (int)w.shared));
	if (plan.blocks == 1)
		return resident_for(d, rows, kernel, plan.threads, w.shared, worth);
	CUDA(cudaFuncSetAttribute(kernel,
		cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
	int most = 0;
	with_clusters(d, plan, w.shared, 1, [&](const cudaLaunchConfig_t &c) {
		CUDA(cudaOccupancyMaxActiveClusters(&most, kernel, &c));
	});
	size_t some = worth * chip / plan.blocks;
	if (some > (size_t)most)
		some = most;
	return blocks_for(rows, blocks_for(rows, some > 0 ? some : 1));
}

template <class Arrays> static void launch_walk(Device *d, const NormPlan &plan,
	void (*kernel)(Arrays), const WalkLaunch &w, const Arrays &a)
{
	const auto launch = [&](const cudaLaunchConfig_t &c) {
		CUDA(cudaLaunchKernelEx(&c, kernel, a));
	};
	with_clusters(d, plan, w.shared, w.clusters, launch);
}

#endif
