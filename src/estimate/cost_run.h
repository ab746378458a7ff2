/* cost_run.h: a model, how a step divides it, and the formats of its data */
#ifndef ESTIMATE_COST_RUN_H
#define ESTIMATE_COST_RUN_H

#include <stdbool.h>

#include "base/choices.h"
#include "estimate/cost_shape.h"

#define COST_STRATEGIES_OF(FIRST, NEXT) \
	FIRST(COST_SINGLE, "single") NEXT(COST_NAIVE, "naive") \
	NEXT(COST_FLAT, "flat") NEXT(COST_OVERLAP, "overlap") \
	NEXT(COST_BUCKETED, "bucketed") NEXT(COST_SHARDED, "sharded") \
	NEXT(COST_ZERO1, "zero1") NEXT(COST_ZERO2, "zero2") \
	NEXT(COST_FSDP, "fsdp")
#define COST_STRATEGIES CHOICES(COST_STRATEGIES_OF)
typedef enum { CHOICE_IDS(COST_STRATEGIES_OF) NCOST } CostStrategy;
extern const char *const cost_names[NCOST];

typedef struct CostRun {
	CostShape shape;
	/* tokens of a rank in a microbatch; tokens of a sequence */
	double tokens, context;
	/* ranks of data parallelism, of tensor parallelism, parts of a sequence,
	 * stages of a pipeline: their product is the number of devices */
	long data, tensor, parts, stages;
	long microbatches, interleave;   /* in a step; runs of blocks of a stage */
	CostStrategy strategy;
	double bucket_mb;                /* of COST_BUCKETED */
	long prefetch;                   /* of COST_FSDP */
	/* bytes of an element in memory: real, of masters and the stream; low,
	 * of arrays between matmuls and of the weights that these read;
	 * gradient. Bytes of an element that travels: gather, of weights; wire,
	 * of gradients */
	double real, low, gradient, gather, wire;
	/* the blocks' linear layers multiply in FP8, so many times as fast; 0: in
	 * `low` bytes. code: bytes of an element in FP8 */
	double fp8, code;
	bool mixed;                      /* matmuls read copies of the masters */
	bool flash;                      /* attention keeps no scores */
	bool recompute;                  /* blocks keep their inputs, and run again */
	bool norms;                      /* tensor-parallel ranks keep whole norms */
	/* measured passes, without FP8, and update of one device; 0: they follow
	 * from the constants */
	double fwd_ms, bwd_ms, opt_ms;
} CostRun;

#endif
