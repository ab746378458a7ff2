/* strategies.h: a model that trains by any strategy */
#ifndef TESTS_STRATEGIES_H
#define TESTS_STRATEGIES_H

#include "base/clock.h"
#include "dist/ddp.h"
#include "dist/sharded_model.h"
#include "dist/tensor.h"
#include "dist/zero.h"
#include "tests/ops/compare.h"
#include "tests/dist/faults.h"
#include "train/step.h"

// declare strategies and what happens to a rank
#define STRATEGIES_OF(FIRST, NEXT) \
	FIRST(DDP, "ddp") NEXT(SHARDED, "sharded") NEXT(ZERO1, "zero1") \
	NEXT(ZERO2, "zero2") NEXT(FSDP, "fsdp") NEXT(TENSOR, "tensor")
typedef enum { CHOICE_IDS(STRATEGIES_OF) NSTRATEGIES } FaultyStrategy;
static const char *const names[NSTRATEGIES] = { CHOICE_NAMES(STRATEGIES_OF) };
static const Shape shape = { 31, 6, 12, 10, 2, 3, 4, 10000 };
enum { B = 2, ASTRAY = 3 };                              /* ASTRAY: a step */

typedef struct StrategyFault {
	FaultyStrategy strategy;
	int ranks, rank;
	/* what happens to the rank, after so long; NULL: it skips collectives */
	void (*happens)(int signal);
	int after_us, limit_s;
	const char *device, *transport;  /* device "cuda:": rank r has GPU r */
} StrategyFault;

// build a model for any strategy
typedef struct TrainedRank {
	Model *m;
	Optimizer adamw, *o;
	Ddp *ddp;
	ShardedModel *sharded;
	Zero *zero;
	TensorGroup group;
} TrainedRank;

static const OptimizerSettings settings = { .lr = 1e-3, .beta1 = 0.9,
	.beta2 = 0.999, .eps = 1e-8 };

static inline void build(TrainedRank *t, Device *d, Comm *c, FaultyStrategy s)
{
	const Policy *fp32 = &policies[POLICY_FP32];
	bool zero = s >= ZERO1 && s <= FSDP;
	*t = (TrainedRank){ .o = &t->adamw };
	tensor_group(&t->group, d, c);
	t->m = zero ? model_new_bare(d, &shape, fp32, 7) : model_new_part(d, &shape,
		fp32, 7, s == TENSOR ? &t->group.group : NULL);
	model_fuse(t->m);
	// build a stage of ZeRO
	if (zero) {
		t->zero = zero_new(t->m, c, &(ZeroSettings){ .stage = s - ZERO1 + 1,
			.prefetch = 1, .wire = FP32 }, &adamw_kind, settings);
		t->o = zero_optimizer(t->zero);
		return;
	}
	if (s != TENSOR)
		t->ddp = ddp_new(t->m, c, &(DdpSettings){ DDP_BUCKETED, 0.004, FP32,
			false });
	if (s == SHARDED) {
		t->sharded = sharded_model_new(t->m, c, &adamw_kind, settings);
		t->o = sharded_model_optimizer(t->sharded);
	} else {
		t->adamw = adamw_new(t->m, 1e-3, 0.9, 0.999, 1e-8, 0);
	}
}

// skip collectives
static Hooks real_hooks;
static RankGroup real_group;
static bool skipped;

static inline void skip_unit(void *self, int unit, bool backward)
{
	if (!backward || skipped)
		real_hooks.after_unit(self, unit, backward);
	else
		skipped = true;
}

static inline void skip_sum(void *self, const GroupOp *op, GroupSlot slot)
{
	if (skipped || op->kind != GROUP_SCATTER)
		real_group.start(self, op, slot);
	skipped = skipped || op->kind == GROUP_SCATTER;
}

static inline void go_astray(TrainedRank *t)
{
	real_hooks = t->m->hooks;
	real_group = t->group.group;
	if (t->zero)
		t->m->hooks.after_unit = skip_unit;
	else if (t->sharded)
		t->m->hooks.after_update = NULL;
	else if (t->ddp)
		t->m->hooks = (Hooks){ 0 };
	else
		t->group.group.start = skip_sum;
}

#endif
