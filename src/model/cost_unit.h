/* cost_unit.h: devices, links, models and runs of the cost model, and what one
 * unit of a model takes. Times are in ms, rates in 1e12 FLOP/s and 1e9 bytes/s */
#ifndef MODEL_COST_UNIT_H
#define MODEL_COST_UNIT_H

#include <stdbool.h>

#include "model/schedule.h"
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
	/* of a block, besides what its FLOPs and bytes take */
	double forward_us, backward_us;
	double call_us;                  /* alpha: a collective, whatever its size */
	double broadcast_us;             /* and besides, of a broadcast */
	double sum_ms_per_GB;            /* gamma: a GB that arrives and is added */
	/* of the square root of the MB that a device sends: an array travels in
	 * pieces, more and larger ones the larger it is */
	double pieces_us;
	CostLink near, far;              /* inside a node; between nodes */
	/* of a byte in each collective, relative to an all-reduce; 0: the same, less:
	 * no time */
	double byte_cost[COST_COLLECTIVES];
	long node;                       /* devices of a node */
	QueueStretch stretch;
} CostMachine;

/* n devices that take part in a collective, `node` of them on each node */
typedef struct CostGroup {
	long n, node;
} CostGroup;

/* of an array of nbytes, all of it. One device, or no bytes: 0 */
double cost_collective(const CostMachine *m, CostCollective what, CostGroup g,
	double nbytes);

// declare the shape of a model
/* as model/shape.h, and those of others: keys and values may be narrower than
 * queries, and a feed-forward layer may have two matrices. No heads: neither
 * attention nor norms; no vocabulary: neither embedding nor head */
typedef struct CostShape {
	double vocab, d_model, d_ff, layers, heads, d_head, kv_heads, matrices;
} CostShape;

CostShape cost_shape(const Shape *shape);
double cost_parameters(const CostShape *s);
/* FLOPs of a token in the forward pass: matmuls, and causal attention to half of
 * `context`; backward takes twice as many */
double cost_forward_flops(const CostShape *s, double context);

// declare a run
typedef enum { COST_SINGLE, COST_NAIVE, COST_FLAT, COST_OVERLAP, COST_BUCKETED,
	COST_SHARDED, COST_ZERO1, COST_ZERO2, COST_FSDP, NCOST } CostStrategy;
#define COST_STRATEGIES "single|naive|flat|overlap|bucketed|sharded|zero1|" \
	"zero2|fsdp"
extern const char *const cost_names[NCOST];

typedef struct CostRun {
	CostShape shape;
	/* of a rank in a microbatch; of a sequence */
	double tokens, context;
	/* ranks of data parallelism, of tensor parallelism, parts of a sequence,
	 * stages of a pipeline: their product is the number of devices */
	long data, tensor, parts, stages;
	long microbatches, interleave;   /* in a step; runs of blocks of a stage */
	CostStrategy strategy;
	double bucket_mb;                /* of COST_BUCKETED */
	long prefetch;                   /* of COST_FSDP */
	/* bytes of an element in memory: masters and the stream; between matmuls, and
	 * weights that these read; gradients. And of one that travels: weights of
	 * matmuls, gradients */
	double real, low, gradient, gather, wire;
	bool mixed;                      /* matmuls read copies of the masters */
	bool flash;                      /* attention keeps no scores */
	bool recompute;                  /* blocks keep their inputs, and run again */
	bool norms;                      /* a tensor-parallel rank keeps them whole */
	/* one device's own passes and update, measured; 0: from the constants */
	double fwd_ms, bwd_ms, opt_ms;
} CostRun;

// declare the units of a run
enum { COST_TENSORS = 9 };           /* of a block, as in model/shape.h */
typedef enum { UNIT_EMBEDDING, UNIT_BLOCK, UNIT_HEAD } CostUnit;

/* elements of a block; of its tensors, 0: absent. tensors: or NULL */
double cost_block_tensors(const CostShape *s, double tensors[COST_TENSORS]);
/* of a device: its blocks, its elements, a pass over a unit, and the collectives
 * that the pass waits for */
int    cost_blocks(const CostRun *r);
double cost_elements(const CostRun *r);
double cost_unit_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward);
double cost_tensor_ms(const CostMachine *m, const CostRun *r, CostUnit unit,
	bool backward);
/* the optimizer's part of a step. r->opt_ms > 0: m is not read */
double cost_update_ms(const CostMachine *m, const CostRun *r);
/* those that sum gradients with it */
CostGroup cost_data_group(const CostMachine *m, const CostRun *r);

#endif
