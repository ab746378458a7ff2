/* ddp_case.h: what data parallelism is timed on: configurations, options and
 * columns, and a case, which is one of several ranks */
#ifndef CASES_DDP_CASE_H
#define CASES_DDP_CASE_H

#include "bench/training.h"
#include "dist/ddp.h"

#define WIRES "fp32|bf16"
/* the place where gradients are summed: collectives; or the optimizer, after
 * exchanges */
#define SUMS "comm|optimizer"
#define UPDATES "late|early"
typedef struct DdpConfig {
	ModelConfig model;
	long batch;                      /* sequences of a rank */
	int kind;                        /* of DDP_KINDS */
	double bucket_mb;                /* 0 unless bucketed */
	int wire, transport, sums;       /* of WIRES, TRANSPORTS, SUMS */
	/* thread blocks of a collective's kernel, 0: as the transport likes; as many
	 * multiprocessors are left to it */
	long ctas;
	long ranks;
	long warmup, steps;              /* before measuring; measured */
} DdpConfig;

// declare the options of programs on data parallelism
/* the options of the command line; -1 or 0: not given */
typedef struct DdpGiven {
	int size, precision, fusion, wire, transport, sums;
	long context, batch, ctas, ranks, warmup, steps;
} DdpGiven;
#define DDP_GIVEN { .size = -1, .precision = -1, .fusion = FUSION_FUSED,     \
	.wire = -1, .batch = 4, .ctas = -1, .sums = -1, .ranks = 2 }
#define DDP_COMM_OPTIONS(given)                                              \
	TRANSPORT_OPTION(&(given).transport),                                \
	{ "ctas", OPT_INT, &(given).ctas, "-1..64",                          \
		"blocks of their kernels; -1: our choice, 0: the library's" }
#define DDP_STEPS_OPTIONS(given)                                             \
	WARMUP_OPTION_IN(&(given).warmup, "0..1000",                         \
		"steps before measuring; 0: 5, on a CPU 1"),                 \
	STEPS_OPTION_IN(&(given).steps, "0..1000",                           \
		"measured steps; 0: 10, on a CPU 3")
#define DDP_OPTIONS(given)                                                   \
	SIZE_OPTION_FOR(&(given).size, "this model only"),                   \
	CONTEXT_OPTION(&(given).context),                                    \
	BATCH_OPTION_IN(&(given).batch, "1..4096", "sequences of a rank"),   \
	PRECISION_OPTION_FOR(&(given).precision, "this precision only"),     \
	{ "fusion", OPT_CHOICE, &(given).fusion, FUSIONS, "which path" },    \
	RANKS_OPTION(&(given).ranks),                                        \
	DDP_COMM_OPTIONS(given),                                             \
	WIRE_OPTION(&(given).wire, "gradients that travel"),                 \
	SUMS_OPTION(&(given).sums),                                          \
	DDP_STEPS_OPTIONS(given)

// declare the rows of data parallelism
#define DDP_KEYS MODEL_KEYS, KEY(DdpConfig, batch),                         \
	KEY(DdpConfig, kind, DDP_KINDS), KEY(DdpConfig, bucket_mb, "%g"),   \
	KEY(DdpConfig, wire, WIRES), KEY(DdpConfig, transport, TRANSPORTS), \
	KEY(DdpConfig, ctas), KEY(DdpConfig, sums, SUMS),                   \
	KEY(DdpConfig, ranks)
extern const Key ddp_keys[];
int  ddp_config_ranks(const void *config);
/* fills the row of a DdpConfig */
void ddp_case_row(Row *row, const void *config);
/* a sweep of a program whose rows are such */
#define DDP_SWEEP(NAME, PLAN) { NAME, ddp_keys, PLAN, ddp_case_row, \
	.ranks = ddp_config_ranks }

// declare a case
/* the work of a queue between two stamps */
typedef struct Interval {
	Queue queue;
	/* class: "forward" or "backward"; "wait", of the compute queue for a
	 * collective; else the collective's name, or NULL: no collective */
	const char *class, *name;
	int number;
	bool backward;
	int from, to;
} Interval;

typedef struct DdpCase {
	DdpConfig config;
	Device *device;
	Comm *comm;
	Model *m;
	Optimizer adamw, *optimizer;     /* optimizer: &adamw, or a strategy's */
	Batch batch;
	Ddp *ddp;                        /* NULL: gradients are not summed */
	Hooks inner;                     /* hooks of ddp, or of a strategy */
	int spare_sms;                   /* multiprocessors left to collectives */
	bool unrecorded;                 /* steps run as they are, not as graphs */
	int watch;
	double sent[NCOLLECTIVES];       /* bytes of the last step, as comm_sent */
	/* the intervals that were watched in the last step, and all its calls
	 * of hooks */
	Interval *intervals;
	HookCall *calls;
	HookListener listener;
	int nintervals, ncalls;
	int open;                        /* index of the interval of the unit */
	size_t update_at;                /* d->nlog when the optimizer began */
	double single_ms, single_bwd_ms;         /* found by ddp_case_single */
} DdpCase;

#endif
