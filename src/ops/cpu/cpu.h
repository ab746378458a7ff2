/* cpu.h: the plain C operations; shapes and meaning as in ops.h. They do not
 * look at the device, which may be NULL */
#ifndef OPS_CPU_CPU_H
#define OPS_CPU_CPU_H

#include "ops/types.h"

/* rounds n elements to y.type in place; does nothing for the type of real */
void   cpu_round(Array y, size_t n);
/* the part of a, on the CPU, that starts at element `offset` */
static inline Array array_at(Array a, size_t offset)
{
	return (Array){ (real *)a.at + offset, a.type };
}

/* the fused softmax is the eager one */
#define cpu_fused_softmax_forward cpu_softmax_forward
#define cpu_fused_softmax_backward cpu_softmax_backward

/* cpu_NAME for each operation */
#define OPERATION(TYPE, NAME, PARAMETERS) TYPE cpu_##NAME PARAMETERS;
#include "ops/list.h"
#undef OPERATION

// declare the CPU kernels
/* the sum of the gradients, in a new array that the caller frees; if there is
 * only one, that array itself */
Array  cpu_sum_gradients(Device *d, Gradients g, size_t n);

extern const AttentionKernel cpu_attention_kernels[];
/* attention in tiles of `rows` queries and `columns` keys */
void   cpu_attention_forward_tiled(Device *d, Attention a, size_t rows,
	size_t columns);
void   cpu_attention_backward_tiled(Device *d, Attention a, AttentionGradient g,
	size_t rows, size_t columns);

/* what one thread does of an operation; these begin no threads. x, y: (H, D) at
 * one position, whose D/2 cosines and sines are given */
void   cpu_rope_row(Array y, Array x, Array cosine, Array sine, size_t H,
	size_t D, int direction);
void   cpu_swiglu_forward_row(Array h, Array a, Array b, size_t n);
void   cpu_swiglu_backward_row(Array da, Array db, Array dh, Array a, Array b,
	size_t n);

/* y[j] += partial[0][j] + partial[1][j] + ..., where partial is (slabs, C);
 * y is rounded to its type afterwards */
void   cpu_add_slabs(Array y, const real *partial, size_t slabs, size_t C);

#endif
