/* cost_run.h: a model, how a step divides it, and the formats of its data */
#ifndef ESTIMATE_COST_RUN_H
#define ESTIMATE_COST_RUN_H

#include <stdbool.h>

#include "estimate/cost_shape.h"

typedef enum { COST_SINGLE, COST_NAIVE, COST_FLAT, COST_OVERLAP, COST_BUCKETED,
	COST_SHARDED, COST_ZERO1, COST_ZERO2, COST_FSDP, NCOST } CostStrategy;
#define COST_STRATEGIES "single|naive|flat|overlap|bucketed|sharded|zero1|" \
	"zero2|fsdp"
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
	bool mixed;                      /* matmuls read copies of the masters */
	bool flash;                      /* attention keeps no scores */
	bool recompute;                  /* blocks keep their inputs, and run again */
	bool norms;                      /* tensor-parallel ranks keep whole norms */
	/* measured passes and update of one device; 0: they follow from the
	 * constants */
	double fwd_ms, bwd_ms, opt_ms;
} CostRun;

#endif
