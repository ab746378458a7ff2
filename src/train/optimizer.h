/* optimizer.h: AdamW and SGD over spans of parameters */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include "model/model.h"
#include "model/span.h"

// declare the settings of an optimizer
typedef struct OptimizerSettings {
	double lr;
	double beta1, beta2, eps, decay;    /* AdamW */
	double momentum;                    /* SGD */
	/* the largest allowed norm of all gradients together; 0: no limit. A
	 * recorded step keeps the limit that it was recorded with */
	double clip;
} OptimizerSettings;

enum { MOST_STATES = 2 };
typedef struct OptimizerKind OptimizerKind;
extern const OptimizerKind adamw_kind, sgd_kind;

// declare an optimizer
typedef struct Optimizer {
	/* NULL: steps are only counted, and the model's hooks update the weights */
	const OptimizerKind *kind;
	OptimizerSettings settings;      /* may be changed between steps */
	long t;                          /* number of the last step; 1 is the first */
	Device *device;
	bool fused;                      /* updates a span by one kernel */
	size_t n;                        /* elements of all spans */
	/* (n), one span after the other, of the type of the weights */
	Array state[MOST_STATES];
	void *scalars;                   /* on the device, of the last step */
	/* the buffers that the update sums, each laid out like `gradients`,
	 * into which the spans' gradients point. sums.n = 0: the spans'
	 * gradients alone. A recorded step keeps the buffers that it was
	 * recorded with. Unfused AdamW cannot sum */
	Gradients sums;
	Array gradients;
	/* a model that a group of ranks shares, so that clipping needs the norm
	 * over all ranks; or NULL */
	const Model *parts;
	/* the spans that a step updates; NULL: all of the model. squares: the
	 * squared norm by which to clip, if it covers more than these spans; at
	 * is NULL: it is computed from them */
	const Span *spans;
	int nspans;
	/* how many of the first spans hooks update during the backward pass */
	int early;
	Array squares;
} Optimizer;

Optimizer optimizer_new(Device *device, const OptimizerKind *kind,
	OptimizerSettings settings, const Span *spans, int nspans, bool fused);
void      optimizer_free(Optimizer *o);
/* do updates write the codes of spans that have some (Span)? */
bool      optimizer_writes_codes(const Optimizer *o);
/* the gradients that the update of a span sums */
Gradients optimizer_gradients(const Optimizer *o, const Span *span);
/* the name of state i, such as "m"; NULL: there is no state i */
const char *optimizer_state_name(const Optimizer *o, int i);
/* begins a step: copies its scalars to the device. Gradients are multiplied by
 * unscale, which undoes the loss scale */
void      optimizer_begin(Optimizer *o, double unscale);
/* queues the update of spans, of the same sizes as those given to
 * optimizer_new; the kernels do nothing when *skip is not 0 */
void      optimizer_apply(const Optimizer *o, const Span *spans, int nspans,
	const int32_t *skip);
/* after optimizer_begin: queues the update of spans[i] alone, without
 * clipping */
void      optimizer_apply_one(const Optimizer *o, const Span *spans, int i,
	const int32_t *skip);
/* after optimizer_begin: scales the step's gradients down so that the norm
 * of those of these spans is at most settings.clip. optimizer_apply does
 * this itself for the spans that it is given */
void      optimizer_clip(const Optimizer *o, const Span *spans, int nspans);

/* optimizers for all parameters of a model */
Optimizer adamw_new(const Model *m, double lr, double beta1, double beta2,
	double eps, double decay);
Optimizer sgd_new(const Model *m, double lr, double momentum);
/* the scalars that AdamW's kernels read in step t */
AdamWStep adamw_scalars(const OptimizerSettings *s, long t, double unscale);

#endif
