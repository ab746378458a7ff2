/* sharding_case.h: training steps of one of several ranks that hold a part of the
 * optimizer's state, of gradients, of weights */
#ifndef EXPERIMENTS_SHARDING_CASE_H
#define EXPERIMENTS_SHARDING_CASE_H

#include "experiments/ddp_case.h"
#include "model/memory_estimate.h"

typedef enum { SINGLE, DDP, SHARDED, ZERO1, ZERO2, FSDP } Strategy;
#define STRATEGIES "single|ddp|sharded|zero1|zero2|fsdp"
typedef struct ShardingConfig {
	DdpConfig ddp;                   /* its kind is not used */
	int strategy;
	long prefetch;                   /* 0 unless fsdp */
	int update;                      /* of UPDATES; early: zero2 only */
} ShardingConfig;
#define UPDATES "late|early"
#define SHARDING_KEYS MODEL_KEYS, KEY(DdpConfig, batch),                      \
	KEY(ShardingConfig, strategy, STRATEGIES),                            \
	KEY(ShardingConfig, prefetch), KEY(DdpConfig, bucket_mb, "%g"),       \
	KEY(DdpConfig, wire, WIRES), KEY(DdpConfig, transport, TRANSPORTS),   \
	KEY(DdpConfig, ctas), KEY(DdpConfig, sums, SUMS), KEY(DdpConfig, ranks)

typedef struct ShardingGiven {
	DdpGiven ddp;
	int strategy;                    /* -1: all */
	long prefetch;
} ShardingGiven;
#define SHARDING_GIVEN { DDP_GIVEN, -1, -1 }
#define SHARDING_OPTIONS(given) DDP_OPTIONS((given).ddp),                     \
	{ "strategy", OPT_CHOICE, &(given).strategy, STRATEGIES,              \
		"this strategy only" },                                       \
	{ "prefetch", OPT_INT, &(given).prefetch, "-1..4",                    \
		"units that fsdp gathers ahead; -1: 0, 1 and 2" }
/* as ddp_given_settle; refuses what ZeRO does not have */
void sharding_given_settle(ShardingGiven *given);
/* a size under the strategies from first to last, as far as they were not ruled
 * out; both: on a GPU in fp32 besides bf16, on a CPU in bf16 besides fp32 */
void sharding_plan(Plan *plan, const ShardingGiven *given, int size,
	Strategy first, Strategy last, bool both);
typedef struct ShardingCase {
	ShardingConfig config;
	DdpCase *run;
	struct ShardedModel *sharded;    /* sharded */
	struct Zero *zero;               /* zero1, zero2, fsdp */
} ShardingCase;

ShardingCase *sharding_case(Row *row, const ShardingConfig *config);
/* a new model, batch and optimizer under the strategy of the configuration */
void     sharding_case_begin(ShardingCase *c);
/* with these */
void     sharding_case_close(ShardingCase **c);

#define SHARDING_TIMES "period_ms step_ms step_sd_ms fwd_ms bwd_ms wait_ms " \
	"opt_ms comm_ms blocked_ms alone_ms all_reduce_MB reduce_scatter_MB " \
	"exchange_MB all_gather_MB broadcast_MB sent_derived_MB weights_MB loss via"
/* once begun */
void     sharding_case_time(Row *row, ShardingCase *c);

/* a part of the run: until the model, the strategy and the optimizer are there;
 * of a step, until the optimizer begins; until its end */
enum { MOMENT_INIT, MOMENT_BEFORE, MOMENT_AFTER, NMOMENTS };
typedef struct Moment {
	/* bytes: where all together have most, by category; at the end of the part.
	 * Without workspaces of libraries and transports, but for workspace */
	double at_peak[NCATEGORIES], peak, active, workspace;
} Moment;
/* begin(arg), which makes the run's model and optimizer, and two steps, of which
 * the second counts */
void     moments_of_steps(DdpCase *run, void (*begin)(void *arg), void *arg,
	Moment moments[NMOMENTS]);
/* the same of a case, which it begins */
void     sharding_case_memory(ShardingCase *c, Moment moments[NMOMENTS]);
/* the same by formula; category[]: where each has most */
MemoryEstimate sharding_case_estimate(const ShardingCase *c, int moment);
#define SHARDING_MEMORY "peak_MiB parameter_MiB gradient_MiB optimizer_MiB " \
	"activation_MiB temporary_MiB active_MiB workspace_MiB derived_MiB " \
	"parameter_derived_MiB gradient_derived_MiB optimizer_derived_MiB"
void     sharding_case_set_memory(Row *row, const Moment *m,
	const MemoryEstimate *derived);
#endif
