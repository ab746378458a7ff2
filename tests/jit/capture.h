/* capture.h: a device that records, and makes plans for a GPU that is
 * nowhere */
#ifndef TESTS_JIT_CAPTURE_H
#define TESTS_JIT_CAPTURE_H

#include "jit/kernel_plan.h"

typedef struct Capture {
	Deferral deferral;
	Device *device;
	Backend backend;
	FusionGroup open;
	char *next;
	size_t nbytes[64];              /* of scratch memory */
	char *scratch[64];
	int n;
	int groups;
	const char *why;                /* the first group was closed */
	void (*see)(struct Capture *c, const KernelPlan *plan);
	KernelPlan last;
} Capture;

/* see: called with each plan, or NULL */
void  capture_begin(Capture *c, void (*see)(Capture *c,
	const KernelPlan *plan));
void  capture_flush(Capture *c);
void  capture_end(Capture *c);
/* an array with an address and no memory */
Array capture_array(Capture *c, size_t n, Type type);

// name what is recorded
/* what: 0 ... NRECORDED - 1; rows of C */
#define RECORDED_OF(FIRST, NEXT) \
	FIRST(NORM_FORWARD, "RMSNorm") NEXT(NORM_BACKWARD, "its gradient") \
	NEXT(SOFTMAX_FORWARD, "softmax") NEXT(SOFTMAX_BACKWARD, "its gradient") \
	NEXT(SWIGLU_FORWARD, "SwiGLU") NEXT(SWIGLU_BACKWARD, "its gradient") \
	NEXT(ROTATION, "RoPE") NEXT(LOSS, "cross-entropy and its gradient") \
	NEXT(ADAMW, "AdamW")
enum { CHOICE_IDS(RECORDED_OF) NRECORDED };
extern const char *const recorded_names[NRECORDED];
void record(Capture *c, int what, size_t rows, size_t C, Type type);

#endif
