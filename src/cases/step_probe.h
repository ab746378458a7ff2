/* step_probe.h: the matmuls and the attention of a training step, in its order,
 * on reused buffers */
#ifndef CASES_STEP_PROBE_H
#define CASES_STEP_PROBE_H

#include "model/shape.h"
#include "ops/ops.h"

/* parts of a step: matmuls of the blocks' linear layers in the forward pass, for
 * gradients of inputs and of weights; of the head; attention in both passes;
 * copies in the place of all other operations */
#define STEP_PARTS_OF(FIRST, NEXT) \
	FIRST(GEMM_FORWARD, "matmuls, forward") \
	NEXT(GEMM_INPUT, "matmuls, gradients of inputs") \
	NEXT(GEMM_WEIGHT, "matmuls, gradients of weights") \
	NEXT(GEMM_HEAD, "matmuls of the head") \
	NEXT(FLASH_FORWARD, "attention, forward") \
	NEXT(FLASH_BACKWARD, "attention, backward") \
	NEXT(COPIES, "all else, as copies")
typedef enum { CHOICE_IDS(STEP_PARTS_OF) NPARTS_OF_STEP } StepPart;
extern const char *const step_parts[NPARTS_OF_STEP];
/* FLOPs of a step's part, for batch x context tokens; attention's backward pass
 * counts five matmuls */
double step_part_flops(const Shape *s, size_t batch, int part);

typedef struct StepProbe StepProbe;
typedef struct ProbeSettings {
	size_t batch, ranks; /* sequences of this rank; ranks that share AdamW */
	size_t chunk;                    /* tokens that have logits at a time */
	Type type;
	bool deterministic; /* accumulation of attention's backward pass */
	bool copies;                     /* in the place of all other operations */
	uint64_t seed;
} ProbeSettings;
/* allocates and draws the buffers of one block and of the head */
StepProbe *step_probe(Device *d, const Shape *s, const ProbeSettings *settings);
void   step_probe_free(StepProbe **p);
/* queues a step and waits for it; sets the ms of each part, and returns that of
 * all */
double step_probe_run(StepProbe *p, double ms[NPARTS_OF_STEP]);
/* ends the program if some results are wrong */
void   step_probe_check(const StepProbe *p);

#endif
