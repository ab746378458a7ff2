/* rmsnorm.h: RMSNorm and its gradients, for programs that link with
 * libsystems.so; see the chapter on norms in writeup.pdf */
#ifndef OPS_RMSNORM_H
#define OPS_RMSNORM_H

#include <stdint.h>

// name the types and the statuses of a norm
typedef enum { RMSNORM_FP32, RMSNORM_BF16, RMSNORM_FP16 } RmsnormType;

typedef enum {
	RMSNORM_OK,
	RMSNORM_BAD_SHAPE,      /* a size is not positive or too large (more than
	                         * 2^31 - 1 rows), rows overlap, or eps is negative
	                         * or not finite */
	RMSNORM_BAD_TYPE,       /* no such type, or not on a CPU, which has FP32 */
	RMSNORM_BAD_VERSION,    /* no such kernel, or not for rows of this width */
	RMSNORM_NULL,           /* the shape or a required array is NULL */
	RMSNORM_NO_GPU,         /* no GPU of this number, or the build has no
	                         * kernels for it */
	RMSNORM_NO_MEMORY,      /* no memory for scratch; nothing was queued */
	RMSNORM_CAPTURES,       /* a CUDA graph would hold the library's scratch:
	                         * see RmsnormShape.scratch */
} RmsnormStatus;

// declare the shape of a norm's rows
typedef struct RmsnormShape {
	int64_t rows, width;
	int64_t x_row, y_row;   /* elements from one row to the next, at least width:
	                         * of x, and of y or its gradient */
	double eps;
	int32_t type;           /* a RmsnormType: of x, y and their gradients */
	int32_t version;        /* 0: the kernel for this width; else a NormVersion
	                         * of ops/norm_types.h. On a CPU all are one */
	/* are the arrays in a GPU's memory? 0: in the host's */
	int32_t on_gpu;
	int32_t gpu;            /* the GPU's number, from 0, as CUDA counts */
	void *stream;           /* on a GPU: cudaStream_t on which work is queued */
	/* gives scratch memory, as in ops/flash_attention.h */
	void *(*scratch)(void *owner, int64_t nbytes);
	void *scratch_owner;
} RmsnormShape;

// declare the calls of a norm
/* y = g x rho, rho = 1/sqrt(mean(x^2) + eps) of each row; g (width) fp32, rho
 * (rows) fp32, or NULL: it is not wanted. On a GPU, work is queued and not
 * waited for. Threads and streams: as in ops/flash_attention.h. Where CUDA
 * fails, the process ends */
int32_t rmsnorm_forward(const RmsnormShape *shape, void *y, float *rho,
	const void *x, const float *g);
/* gradients of a function of y, from that of y: dx (rows, width) dense, dg
 * (width) fp32, overwritten; the same bits on every run. rho NULL: it is
 * computed again from x */
int32_t rmsnorm_backward(const RmsnormShape *shape, void *dx, float *dg,
	const void *dy, const void *x, const float *g, const float *rho);
/* the meaning of a status, in one line of English */
const char *rmsnorm_status(int32_t status);

#endif
