/* step_probe.h: the matmuls and the attention of a training step, in its order,
 * on reused buffers */
#ifndef EXPERIMENTS_STEP_PROBE_H
#define EXPERIMENTS_STEP_PROBE_H

#include "model/shape.h"
#include "ops/ops.h"

typedef enum { GEMM_FORWARD, GEMM_INPUT, GEMM_WEIGHT, GEMM_HEAD, FLASH_FORWARD,
	FLASH_BACKWARD, NPARTS_OF_STEP } StepPart;
extern const char *const step_parts[NPARTS_OF_STEP];
/* FLOPs of a step's part, for N = batch x context tokens; an attention's backward
 * pass counts five matmuls */
double step_part_flops(const Shape *s, size_t batch, int part);

typedef struct StepProbe StepProbe;
/* chunk: tokens of which the head computes logits at a time; deterministic: sums
 * of attention's backward pass */
StepProbe *step_probe(Device *d, const Shape *s, size_t batch, size_t chunk,
	Type type, bool deterministic, uint64_t seed);
void   step_probe_free(StepProbe **p);
/* queues a step and waits for it; the time of each part and of all, by events */
double step_probe_run(StepProbe *p, double ms[NPARTS_OF_STEP]);
/* ends the program unless some results are right */
void   step_probe_check(const StepProbe *p);

#endif
