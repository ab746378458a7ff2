/* sharding_case.h: training steps of one of several ranks that hold a part of the
 * optimizer's state, of gradients, of weights */
#ifndef CASES_SHARDING_CASE_H
#define CASES_SHARDING_CASE_H

#include "cases/ddp_plan.h"
#include "cases/ddp_steps.h"
#include "estimate/memory_estimate.h"

#define STRATEGIES_OF(FIRST, NEXT) \
	FIRST(SINGLE, "single") NEXT(DDP, "ddp") NEXT(SHARDED, "sharded") \
	NEXT(ZERO1, "zero1") NEXT(ZERO2, "zero2") NEXT(FSDP, "fsdp")
#define STRATEGIES CHOICES(STRATEGIES_OF)
typedef enum { CHOICE_IDS(STRATEGIES_OF) NSTRATEGIES } Strategy;
typedef struct ShardingConfig {
	DdpConfig ddp;                   /* its kind is not used */
	int strategy;
	long prefetch;                   /* 0 unless fsdp */
	int update;                      /* of UPDATES; early: zero2 only */
} ShardingConfig;
#define SHARDING_KEYS MODEL_KEYS, KEY(DdpConfig, batch),                      \
	KEY(ShardingConfig, strategy, STRATEGIES),                            \
	KEY(ShardingConfig, prefetch), KEY(DdpConfig, bucket_mb, "%g"),       \
	KEY(DdpConfig, wire, COMMON_TYPES),                                   \
	KEY(DdpConfig, transport, TRANSPORTS),                                \
	KEY(DdpConfig, ctas), KEY(DdpConfig, sums, SUMS), KEY(DdpConfig, ranks)

// declare the options of programs on sharding
typedef struct ShardingGiven {
	DdpGiven ddp;
	int strategy;                    /* -1: all */
	long prefetch;
} ShardingGiven;
#define SHARDING_GIVEN { DDP_GIVEN, -1, -1 }
#define SHARDING_OPTIONS(given) DDP_OPTIONS((given).ddp),                     \
	STRATEGY_OPTION(&(given).strategy, STRATEGIES, "this strategy only"), \
	{ "prefetch", OPT_INT, &(given).prefetch, "-1..4",                    \
		"units that fsdp gathers ahead; -1: 0, 1 and 2" }
/* as ddp_given_settle; refuses what ZeRO does not have */
void sharding_given_settle(ShardingGiven *given);
/* plans a size under the strategies from first to last that the options leave;
 * both: on a GPU in fp32 besides bf16, on a CPU in bf16 besides fp32 */
void sharding_plan(Plan *plan, const ShardingGiven *given, int size,
	Strategy first, Strategy last, bool both);

// declare a case of sharding
typedef struct ShardingCase {
	ShardingConfig config;
	DdpCase *run;
	struct ShardedModel *sharded;    /* NULL unless strategy is SHARDED */
	struct Zero *zero;               /* NULL before ZERO1 */
} ShardingCase;

ShardingCase *sharding_case(Row *row, const ShardingConfig *config);
/* makes model, batch and optimizer under the strategy of the configuration */
void     sharding_case_begin(ShardingCase *c);
/* frees them and the case */
void     sharding_case_close(ShardingCase **c);

/* times steps of a case that has begun, and sets times and volumes */
void     sharding_case_time(Row *row, ShardingCase *c);

/* parts of the run: until model, strategy and optimizer are there; of a step,
 * until the optimizer begins; until the step's end */
enum { MOMENT_INIT, MOMENT_BEFORE, MOMENT_AFTER, NMOMENTS };
typedef struct Moment {
	/* bytes: peak of the part, by category and in all; active at its end.
	 * Workspaces of libraries and transports are in `workspace` alone */
	double at_peak[NCATEGORIES], peak, active, workspace;
} Moment;
/* calls begin(arg), which makes the run's model and optimizer, and takes two
 * steps, of which the second counts */
void     moments_of_steps(DdpCase *run, void (*begin)(void *arg), void *arg,
	Moment moments[NMOMENTS]);
/* the moments of a case, which it begins */
void     sharding_case_memory(ShardingCase *c, Moment moments[NMOMENTS]);
/* the memory of a moment by a dry run, by category where all take most */
MemoryEstimate sharding_case_estimate(const ShardingCase *c, int moment);
/* sets the memory of a moment, by category, and what is derived of it; derived
 * NULL: nothing is */
void     sharding_case_set_memory(Row *row, const Moment *m,
	const MemoryEstimate *derived);
#endif
