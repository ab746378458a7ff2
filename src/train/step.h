/* step.h: random batches, and training steps with the time of each phase */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "base/stats.h"
#include "train/batch.h"
#include "train/optimizer.h"

// declare the time of a step
#define MODES_OF(FIRST, NEXT) \
	FIRST(MODE_FORWARD, "forward") \
	NEXT(MODE_FORWARD_BACKWARD, "forward-backward") \
	NEXT(MODE_TRAIN, "train")
#define MODES CHOICES(MODES_OF)
typedef enum { CHOICE_IDS(MODES_OF) NMODES } Mode;

typedef struct StepTime {
	/* 0 for phases that did not run */
	double fwd_ms, bwd_ms, opt_ms, step_ms, loss;
} StepTime;

/* o: only for MODE_TRAIN */
StepTime timed_step(Model *m, Optimizer *o, const Batch *batch, Mode mode);
/* the last part of it: weights follow the gradients that there are */
void     update_weights(Model *m, Optimizer *o);

// declare a step that is replayed
typedef enum { LAUNCH, HOOK, GROUP_START, GROUP_JOIN } ActionKind;

// declare an action of a replayed step
typedef struct Action {
	ActionKind kind;
	void *graph;                     /* LAUNCH */
	HookCall call;                   /* HOOK */
	GroupOp op;                      /* of GROUP_START */
	GroupSlot slot;                  /* of GROUP_START and GROUP_JOIN */
} Action;

/* a step that is recorded once and then replayed. The first call runs it
 * without recording, which fills the memory pool; the second records. On a
 * device without graphs no call records. Initialised with zeros */
typedef struct Replay {
	Action *actions;
	int nactions;
	bool warm;
	int kernels;                     /* launched by a step; 0: not known */
	double loss_scale;
} Replay;
StepTime replayed_step(Replay *r, Model *m, Optimizer *o, const Batch *batch,
	Mode mode);
void     replay_free(Replay *r, Device *device);
/* counts the kernels of a step of the loaded batch by recording it, without
 * running it; the model must have no hooks */
int      step_kernels(Model *m, Optimizer *o, Mode mode);

// declare the statistics of steps
typedef struct StepStats {
	Stats fwd, bwd, opt, step;       /* ms */
	double loss;                     /* of the last step */
} StepStats;
/* times `steps` steps of one batch after `warmup` others. replay: steps are
 * recorded and replayed. Ends the program if the losses are wrong */
StepStats timed_steps(Model *m, Optimizer *o, const Batch *batch, Mode mode,
	bool replay, long warmup, long steps);
#endif
