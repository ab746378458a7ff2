/* kernel_case.h: operations bound by memory, and sets of arguments for them */
#ifndef CASES_KERNEL_CASE_H
#define CASES_KERNEL_CASE_H

#include "model/shape.h"
#include "ops/array.h"

// describe arguments
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
} ArgumentExtent;

// describe an operation and its arguments
/* fp32; the row's precision; the row's precision, but absent where that is
 * fp32 */
typedef enum { FULL, LOW, EXTRA } ArgumentType;
enum { READ = 1, WRITE = 2, BOTH = READ | WRITE };

typedef struct KernelArgument {
	ArgumentExtent extent;
	ArgumentType kind;
	int use;
} KernelArgument;
enum { NARGUMENTS = 10 };

typedef struct KernelSizes {
	size_t B, T, N, C, F, H, D, V;
	size_t distinct;                     /* tokens in the batch */
	size_t parameters;
} KernelSizes;

typedef enum { ANY, FP32_ONLY, LOW_ONLY } SupportedTypes;

typedef struct TimedOperation {
	const char *name, *path;             /* "rmsnorm forward", "fused" */
	void (*queue)(Device *d, const Array *a, const KernelSizes *s);
	SupportedTypes when;
	KernelArgument arguments[NARGUMENTS];
} TimedOperation;

extern const TimedOperation kernel_operations[];   /* name NULL ends the list */

/* sizes of a batch of random tokens, which all sets made afterwards share */
KernelSizes  kernel_sizes(const Shape *shape, size_t batch, size_t context,
	size_t parameters);
/* elements that are allocated for an argument of this extent */
size_t kernel_length(ArgumentExtent e, const KernelSizes *s);
/* the type of an argument's elements; low: the row's precision */
Type   kernel_type(KernelArgument a, Type low);
/* whether the operation goes without this argument in this precision */
bool   kernel_lacks(KernelArgument a, Type low);
/* allocates the arrays of a set; from: a set whose numbers are copied, or NULL:
 * they are drawn */
void   kernel_set_new(Device *d, Array *set, const Array *from,
	const TimedOperation *op, const KernelSizes *s, Type low);
void   kernel_set_free(Device *d, Array *set);

#endif
