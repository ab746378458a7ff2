/* ddp_case.h: training steps of one of several ranks, timed part by part */
#ifndef CASES_DDP_CASE_H
#define CASES_DDP_CASE_H

#include "bench/training.h"
#include "dist/ddp.h"

#define WIRES "fp32|bf16"
/* who sums gradients: collectives; or the optimizer, after exchanges */
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
#define DDP_KEYS MODEL_KEYS, KEY(DdpConfig, batch),                         \
	KEY(DdpConfig, kind, DDP_KINDS), KEY(DdpConfig, bucket_mb, "%g"),   \
	KEY(DdpConfig, wire, WIRES), KEY(DdpConfig, transport, TRANSPORTS), \
	KEY(DdpConfig, ctas), KEY(DdpConfig, sums, SUMS),                   \
	KEY(DdpConfig, ranks)
int ddp_config_ranks(const void *config);

// declare the options of programs on data parallelism
/* what the command line says; -1 or 0 where it says nothing */
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
/* sets defaults that depend on the device; refuses what cannot be */
void ddp_given_settle(DdpGiven *given);
/* sets in c what was given. False if c is of another size, precision or wire than
 * was given, and is not to be planned */
bool ddp_settle(DdpConfig *c, const DdpGiven *given);
void ddp_plan(Plan *plan, const DdpGiven *given, DdpConfig c);
/* plans the first `kinds` kinds for every size, in bf16, and in fp32 too for xl
 * or the size that was asked for; on a CPU two sizes in fp32 */
void ddp_plan_kinds(Plan *plan, const DdpGiven *given, int kinds);

// declare a case
enum { WATCH_COMM = 1, WATCH_UNITS = 2 };
/* what a queue did between two stamps */
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
	/* of the last step: what was watched, and all calls of hooks */
	Interval *intervals;
	Action *calls;
	int nintervals, ncalls;
	int open;                        /* index of the interval of the unit */
	size_t update_at;                /* d->nlog when the optimizer began */
	double single_ms, single_bwd_ms;         /* found by ddp_case_single */
} DdpCase;

// declare what a case does
Comm    *ddp_comm(Row *row, Device *d, const DdpConfig *config);
/* opens device and communicator; all ranks of the row call this alike */
DdpCase *ddp_case(Row *row, const DdpConfig *config);
/* takes over a device and a communicator that the caller has opened */
DdpCase *ddp_case_over(Device *device, Comm *comm, const DdpConfig *config);
void     ddp_case_close(DdpCase **c);
/* makes a model, a batch and an optimizer; sum: ranks sum their gradients */
void     ddp_case_begin(DdpCase *c, bool sum, int kind, double bucket_mb);
void     ddp_case_end(DdpCase *c);
/* the two halves of ddp_case_begin: makes model and batch; bare: a model without
 * weights, which rank 0's seed draws later */
void     ddp_case_model(DdpCase *c, bool bare);
/* when the model has its hooks: sets what updates the weights; NULL: a new
 * adamw */
void     ddp_case_train(DdpCase *c, Optimizer *optimizer);

/* medians over steps, of the slowest rank. bwd: until the last gradient is
 * there; wait: from then on until the optimizer may start; with WATCH_COMM comm:
 * collectives one after the other, and blocked: all waits of the compute queue
 * for them; period: from one step to the next by the host's clock; loss: of the
 * last step, on this rank */
typedef struct DdpTimes {
	double fwd_ms, bwd_ms, wait_ms, opt_ms, comm_ms, blocked_ms, period_ms, loss;
	Stats step;                      /* median and sd alone */
} DdpTimes;
DdpTimes ddp_case_steps(DdpCase *c, int watch, long warmup, long steps);
/* gives the model the case's hooks, for steps that are not timed */
void     ddp_case_hook(DdpCase *c);
/* sets the parts of a step, the step, and the loss */
void     ddp_case_set_times(Row *row, const DdpTimes *t);
/* ms of the collectives of a step, with nothing to compute meanwhile */
double   ddp_case_alone(DdpCase *c, int runs);
/* ends the program unless all ranks have equal weights */
void     ddp_case_check(DdpCase *c);
double   ddp_case_ms(const DdpCase *c, int stamp);   /* since the step began */

/* ddp_case_row fills the row of a DdpConfig. Its halves are ddp_case_single
 * and then ddp_case_summed; each leaves the model for ddp_case_end */
void     ddp_case_row(Row *row, const void *config);
/* a sweep of a program whose rows are such */
#define DDP_SWEEP(NAME, PLAN) { NAME, ddp_keys, PLAN, ddp_case_row, \
	.ranks = ddp_config_ranks }
extern const Key ddp_keys[];
void     ddp_case_single(Row *row, DdpCase *c);
void     ddp_case_summed(Row *row, DdpCase *c);
#endif
