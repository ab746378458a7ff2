/* kernel_case.h: operations bound by memory, and sets of arguments for them */
#ifndef EXPERIMENTS_KERNEL_CASE_H
#define EXPERIMENTS_KERNEL_CASE_H

#include "model/shape.h"
#include "ops/array.h"

typedef enum {
	NONE,                  /* ends the list */
	HIDDEN, INNER,         /* (N, C), (N, F) */
	GATE_UP, QKV,          /* (N, 2F), (N, 3C) */
	SCORES, TRIANGLE,      /* (B, H, T, T); up to the diagonal */
	ATTENTION,             /* TRIANGLE, of the output of softmax */
	LOGITS, TOKENS,        /* (N, V), (N) */
	ROW, GAIN, ANGLES,     /* (N), (C), (T, D/2) */
	TABLE, ENTRIES,        /* (V, C); the rows of it that tokens name */
	WEIGHTS, SQUARES,      /* the optimizer's; not negative */
	SCALARS                /* an AdamWStep */
} Extent;

/* fp32; the row's precision; that, but absent when it is fp32 */
typedef enum { FULL, LOW, EXTRA } Kind;
enum { READ = 1, WRITE = 2, BOTH = READ | WRITE };

typedef struct Argument { Extent extent; Kind kind; int use; } Argument;
enum { NARGUMENTS = 10 };

typedef struct Sizes {
	size_t B, T, N, C, F, H, D, V;
	size_t distinct;                     /* tokens in the batch */
	size_t parameters;
} Sizes;

typedef enum { ANY, FP32_ONLY, LOW_ONLY } When;

typedef struct Operation {
	const char *name, *path;             /* "rmsnorm forward", "fused" */
	void (*queue)(Device *d, const Array *a, const Sizes *s);
	When when;
	Argument arguments[NARGUMENTS];
} Operation;

extern const Operation kernel_operations[];   /* name NULL ends the list */

/* of a batch of random tokens, which all sets made afterwards share */
Sizes  kernel_sizes(const Shape *shape, size_t batch, size_t context,
	size_t parameters);
/* elements that are allocated; low: the row's precision */
size_t kernel_length(Extent e, const Sizes *s);
Type   kernel_type(Argument a, Type low);
bool   kernel_lacks(Argument a, Type low);
/* new arrays; from: what they are copies of, or NULL: drawn */
void   kernel_set_new(Device *d, Array *set, const Array *from,
	const Operation *op, const Sizes *s, Type low);
void   kernel_set_free(Device *d, Array *set);

#endif
