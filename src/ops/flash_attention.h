/* flash_attention.h: exact attention (FlashAttention), for programs that link
 * with libsystems.so; see the chapter Attention on Hopper in writeup.pdf */
#ifndef OPS_FLASH_ATTENTION_H
#define OPS_FLASH_ATTENTION_H

#include <stdint.h>

// name the types and the statuses of attention
typedef enum { FLASH_FP32, FLASH_TF32, FLASH_BF16, FLASH_FP16 } FlashType;

/* which keys query i sees: all; 0 ... i; 0 ... i + seqlen_k - seqlen_q */
typedef enum { FLASH_FULL, FLASH_CAUSAL, FLASH_CAUSAL_BOTTOM_RIGHT } FlashMask;

typedef enum {
	FLASH_OK,
	FLASH_BAD_SHAPE,        /* a size is not positive or too large (more than
	                         * 4 million queries or keys, or in all more than a
	                         * GPU's grids take), kv_heads divides not heads,
	                         * scale is negative or not finite, no such mask, or a
	                         * part of what packed sequences need is missing; on a
	                         * CPU also: they do not fill their rows, or rows are
	                         * less than head_size or 2^31 and more apart */
	FLASH_BAD_TYPE,         /* no such type, or not on a CPU, which has FP32 */
	FLASH_BAD_HEAD_SIZE,    /* the GPU's kernels are for 16, 32, 64, 80, 96,
	                         * 128 and 256 */
	FLASH_NULL,             /* the shape or an array is NULL */
	FLASH_NO_GPU,           /* no GPU of this number, or the build has no
	                         * kernels for it */
	FLASH_NO_MEMORY,        /* no memory for scratch; nothing was queued */
	FLASH_CAPTURES,         /* a CUDA graph would hold the library's scratch:
	                         * see FlashShape.scratch */
} FlashStatus;

// declare the arrays and the shape of attention
/* element (b, i, h, d) of an array is at[b batch + i row + h head + d]; strides
 * count elements, and are not negative */
typedef struct FlashArray {
	void *at;
	int64_t batch, row, head;
} FlashArray;

typedef struct FlashShape {
	int64_t batch, heads, seqlen_q, seqlen_k, head_size;
	int64_t kv_heads;       /* of K, V and their gradients, a divisor of heads: as
	                         * many share one; 0: heads */
	/* sequences packed one after the other: where each begins, batch + 1 rows,
	 * the last total_q or total_k, in the memory of the arrays; seqlen_q and
	 * seqlen_k are at least the longest, and L is (heads, total_q). NULL: all
	 * sequences are as long */
	const int32_t *cu_seqlens_q, *cu_seqlens_k;
	int64_t total_q, total_k;
	double scale;           /* of scores, before the softmax; 0: the usual one,
	                         * 1/sqrt(head_size) */
	int32_t causal;         /* a FlashMask */
	int32_t type;           /* a FlashType: of all arrays but L */
	/* are the arrays in a GPU's memory? 0: in the host's */
	int32_t on_gpu;
	int32_t gpu;            /* the GPU's number, from 0, as CUDA counts */
	int32_t deterministic;  /* 0: parts of dQ may be added in any order: faster
	                         * if n is large, other last bits on every run */
	void *stream;           /* on a GPU: cudaStream_t on which work is queued */
	/* nbytes of memory beside the arrays, aligned to 256, free until the work
	 * that the call queues is done; NULL: there is none. Without this function
	 * the library has memory of its own: calls for a GPU then wait for each
	 * other's work, and none is captured into a CUDA graph */
	void *(*scratch)(void *owner, int64_t nbytes);
	void *scratch_owner;
} FlashShape;

// declare the calls of attention
/* O = softmax(scale Q K^T) V, and L (batch, heads, seqlen_q), dense and in
 * fp32: the logarithm of the sum of exponentials of each row of scores. On a
 * GPU, work is queued and not waited for. Any thread may call at any time.
 * Without `scratch` the stream of the last call for a GPU exists until one with
 * another stream has returned. Where CUDA fails, the process ends */
int32_t flash_attention_forward(const FlashShape *shape, FlashArray o, float *L,
	FlashArray q, FlashArray k, FlashArray v);
/* gradients of a function of O, from that of O: the same bits on every run,
 * if deterministic is set */
int32_t flash_attention_backward(const FlashShape *shape, FlashArray dq,
	FlashArray dk, FlashArray dv, FlashArray q, FlashArray k, FlashArray v,
	FlashArray o, const float *L, FlashArray dO);
/* the meaning of a status, in one line of English */
const char *flash_attention_status(int32_t status);

#endif
