/* step.h: random batches, and training steps with the time of each phase */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "base/stats.h"
#include "train/optimizer.h"

typedef enum { MODE_FORWARD, MODE_FORWARD_BACKWARD, MODE_TRAIN } Mode;
#define MODES "forward|forward-backward|train"

typedef struct Batch {
	size_t B, T;
	int32_t *tokens, *targets;       /* (B, T) */
} Batch;

typedef struct StepTime {
	/* 0 for phases that did not run */
	double fwd_ms, bwd_ms, opt_ms, step_ms, loss;
} StepTime;

Batch    batch_random(size_t B, size_t T, long vocab, uint64_t seed);
void     batch_free(Batch *b);
/* o: only for MODE_TRAIN */
StepTime timed_step(Model *m, Optimizer *o, const Batch *batch, Mode mode);
/* the last part of it: weights follow the gradients that there are */
void     update_weights(Model *m, Optimizer *o);

// declare a step that is replayed
typedef enum { LAUNCH, BEFORE_UNIT, AFTER_UNIT, GRADIENT_READY, BEFORE_UPDATE,
	AFTER_UPDATE, GROUP_START, GROUP_JOIN } ActionKind;
typedef struct Action {
	ActionKind kind;
	void *graph;                     /* LAUNCH */
	int first, count;                /* unit; parameters */
	bool backward;
	GroupOp op;                      /* GROUP_START */
	GroupSlot slot;                  /* and GROUP_JOIN */
} Action;

/* a step that is recorded once and replayed. The first call runs it as it is,
 * to fill the pool; the second records; where a device cannot, all run as is */
typedef struct Replay {
	Action *actions;                 /* starts at zero */
	int nactions;
	bool warm;
	int kernels;                     /* launched by a step; 0: not known */
	double loss_scale;
} Replay;
StepTime replayed_step(Replay *r, Model *m, Optimizer *o, const Batch *batch,
	Mode mode);
void     replay_free(Replay *r, Device *device);
/* kernels of a step of the loaded batch, which is recorded and not done; the
 * model has no hooks */
int      step_kernels(Model *m, Optimizer *o, Mode mode);

typedef struct StepStats {
	Stats fwd, bwd, opt, step;       /* ms */
	double loss;                     /* of the last step */
} StepStats;
/* of steps of one batch after warmup others; replay: are they recorded? Ends
 * the program if their losses are wrong */
StepStats timed_steps(Model *m, Optimizer *o, const Batch *batch, Mode mode,
	bool replay, long warmup, long steps);
#endif
