/* cost_unit.h: devices, links, models and runs of the cost model, and what
 * one unit of a model takes. Times are in ms, rates in 1e12 FLOP/s and 1e9
 * bytes/s */
#ifndef ESTIMATE_COST_UNIT_H
#define ESTIMATE_COST_UNIT_H

#include <stdbool.h>

#include "base/choices.h"
#include "estimate/schedule.h"
#include "model/shape.h"

// declare what a device and its links do
typedef struct CostLink {
	double GBps;                     /* a device sends, and receives as much */
	double step_us;                  /* latency of a step of a ring */
} CostLink;

typedef enum { COST_ALL_REDUCE, COST_REDUCE_SCATTER, COST_ALL_GATHER,
	COST_BROADCAST, COST_COLLECTIVES } CostCollective;

typedef struct CostMachine {
	double TFLOPs, GBps;             /* of matmuls; of memory */
	double memory_GB;
	/* for each block, in addition to the time of its FLOPs and bytes */
	double forward_us, backward_us;
	double call_us;                  /* alpha: of any collective */
	double broadcast_us;             /* of a broadcast, in addition */
	double sum_ms_per_GB;            /* gamma: a GB that arrives and is added */
	/* for each square root of a MB that a device sends: a larger array
	 * travels in more and larger pieces */
	double pieces_us;
	CostLink near, far;              /* inside a node; between nodes */
	/* cost of a byte in each collective, relative to an all-reduce; 0: the
	 * same as there; negative: none */
	double byte_cost[COST_COLLECTIVES];
	long node;                       /* devices of a node */
	QueueStretch stretch;
} CostMachine;

// declare what a collective costs
/* n devices that take part in a collective, `node` of them on each node */
typedef struct CostGroup {
	long n, node;
} CostGroup;

/* ms of a collective on an array of nbytes in all; 0 for one device or no
 * bytes */
double cost_collective(const CostMachine *m, CostCollective what, CostGroup g,
	double nbytes);

// declare the shape of a model
/* shapes of our models and of others. Keys and values may be narrower than
 * queries (kv_heads), and a feed-forward layer may have two matrices or
 * three. heads = 0: no attention and no norms; vocab = 0: no embedding and
 * no head */
typedef struct CostShape {
	double vocab, d_model, d_ff, layers, heads, d_head, kv_heads, matrices;
} CostShape;

CostShape cost_shape(const Shape *shape);
double cost_parameters(const CostShape *s);
/* FLOPs of a token's forward pass: matmuls, and causal attention to half of
 * `context` on average; the backward pass takes twice as many */
double cost_forward_flops(const CostShape *s, double context);

// declare a run
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
	bool mixed;                      /* matmuls read copies of the masters */
	bool flash;                      /* attention keeps no scores */
	bool recompute;                  /* blocks keep their inputs, and run again */
	bool norms;                      /* tensor-parallel ranks keep whole norms */
	/* measured passes and update of one device; 0: they follow from the
	 * constants */
	double fwd_ms, bwd_ms, opt_ms;
} CostRun;

// declare the units of a run
enum { COST_TENSORS = 9 };           /* of a block, as in model/shape.h */
typedef enum { UNIT_EMBEDDING, UNIT_BLOCK, UNIT_HEAD } CostUnit;

/* elements of a block; sets the elements of each of its tensors, 0 for one
 * that is absent, unless tensors is NULL */
double cost_block_tensors(const CostShape *s, double tensors[COST_TENSORS]);
/* of one device: how many blocks and elements it has; ms of a pass over a
 * unit; ms of the collectives that the pass waits for */
int    cost_blocks(const CostRun *r);
double cost_elements(const CostRun *r);
double cost_unit_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward);
double cost_tensor_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward);
/* ms of the optimizer; m is not read if r->opt_ms > 0 */
double cost_update_ms(const CostMachine *m, const CostRun *r);
/* the devices that sum gradients with one another */
CostGroup cost_data_group(const CostMachine *m, const CostRun *r);

#endif
