/* ddp_config.h: what programs on data parallelism have in common: a row's
 * configuration, its options and its keys */
#ifndef CASES_DDP_CONFIG_H
#define CASES_DDP_CONFIG_H

#include "bench/training.h"
#include "dist/ddp.h"

/* the place where gradients are summed: collectives; or the optimizer, after
 * exchanges */
#define SUMS_OF(FIRST, NEXT) \
	FIRST(SUMS_BY_COMM, "comm") NEXT(SUMS_BY_OPTIMIZER, "optimizer")
#define SUMS CHOICES(SUMS_OF)
enum { CHOICE_IDS(SUMS_OF) };
/* weights are updated after the backward pass, or during it */
#define UPDATES_OF(FIRST, NEXT) \
	FIRST(UPDATE_LATE, "late") NEXT(UPDATE_EARLY, "early")
#define UPDATES CHOICES(UPDATES_OF)
enum { CHOICE_IDS(UPDATES_OF) };
typedef struct DdpConfig {
	ModelConfig model;
	long batch;                      /* sequences of a rank */
	int kind;                        /* of DDP_KINDS */
	double bucket_mb;                /* 0 unless bucketed */
	int wire, transport, sums;       /* of COMMON_TYPES, TRANSPORTS, SUMS */
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
/* the format of gradients on the wire; not given: fp32 */
static inline Type ddp_wire(const DdpGiven *g)
{
	return g->wire < 0 ? FP32 : (Type)g->wire;
}
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
	FUSION_OPTION(&(given).fusion),                                      \
	RANKS_OPTION(&(given).ranks),                                        \
	DDP_COMM_OPTIONS(given),                                             \
	WIRE_OPTION(&(given).wire, "gradients that travel"),                 \
	SUMS_OPTION(&(given).sums),                                          \
	DDP_STEPS_OPTIONS(given)

// declare the rows of data parallelism
#define DDP_KEYS MODEL_KEYS, KEY(DdpConfig, batch),                         \
	KEY(DdpConfig, kind, DDP_KINDS), KEY(DdpConfig, bucket_mb, "%g"),   \
	KEY(DdpConfig, wire, COMMON_TYPES),                                 \
	KEY(DdpConfig, transport, TRANSPORTS),                              \
	KEY(DdpConfig, ctas), KEY(DdpConfig, sums, SUMS),                   \
	KEY(DdpConfig, ranks)
extern const Key ddp_keys[];
int  ddp_config_ranks(const void *config);
/* fills the row of a DdpConfig */
void ddp_case_row(Row *row, const void *config);
/* a sweep of a program whose rows are such */
#define DDP_SWEEP(NAME, PLAN) { NAME, ddp_keys, PLAN, ddp_case_row, \
	.ranks = ddp_config_ranks }

#endif
