/* optimizer.h: AdamW and SGD over spans of parameters */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include "model/model.h"

typedef struct OptimizerSettings {
	double lr;
	double beta1, beta2, eps, decay;    /* AdamW */
	double momentum;                    /* SGD */
	/* most that the norm of all gradients may be; 0: anything. A recorded step
	 * keeps it */
	double clip;
} OptimizerSettings;

enum { MOST_STATES = 2 };
typedef struct OptimizerKind OptimizerKind;
extern const OptimizerKind adamw_kind, sgd_kind;

typedef struct Optimizer {
	/* NULL: steps are counted, and the model's hooks update the weights */
	const OptimizerKind *kind;
	OptimizerSettings settings;      /* may be changed between steps */
	long t;                          /* number of the last step; 1 is the first */
	Device *device;
	bool fused;                      /* one kernel for a span, not several */
	size_t n;                        /* elements of all spans */
	/* (n), one span after the other, of the type of the weights */
	Array state[MOST_STATES];
	void *scalars;                   /* of the last step, on the device */
	/* where the update sums several gradients: buffers, each laid out as
	 * `gradients`, in which the spans' are. sums.n 0: those alone. A
	 * recorded step keeps the buffers that it was recorded with; AdamW
	 * that is not fused takes none */
	Gradients sums;
	Array gradients;
	/* NULL; or a model of which a group of ranks has parts: the norm that is
	 * clipped is that of all parts */
	const Model *parts;
	/* what a step updates; NULL: all of the model. squares: of the norm that is
	 * clipped, where more than these count; at NULL: their own */
	const Span *spans;
	int nspans;
	/* of them, the first ones: hooks have them updated in the backward pass */
	int early;
	Array squares;
} Optimizer;

Optimizer optimizer_new(Device *device, const OptimizerKind *kind,
	OptimizerSettings settings, const Span *spans, int nspans, bool fused);
void      optimizer_free(Optimizer *o);
/* what the update of a span sums */
Gradients optimizer_gradients(const Optimizer *o, const Span *span);
/* "m"; NULL: it has no state i */
const char *optimizer_state_name(const Optimizer *o, int i);
/* brings the scalars of the next step to the device; gradients are multiplied by
 * unscale */
void      optimizer_begin(Optimizer *o, double unscale);
/* queues the update of spans of the same sizes as at first; nothing happens when
 * *skip is not 0 */
void      optimizer_apply(const Optimizer *o, const Span *spans, int nspans,
	const int32_t *skip);
/* after optimizer_begin: the same of spans[i] alone, without clipping */
void      optimizer_apply_one(const Optimizer *o, const Span *spans, int i,
	const int32_t *skip);
/* after optimizer_begin: scales the step's gradients down, so that the norm of
 * those of these spans is settings.clip at most. optimizer_apply does it itself,
 * for its own spans */
void      optimizer_clip(const Optimizer *o, const Span *spans, int nspans);

/* for all parameters of a model */
Optimizer adamw_new(const Model *m, double lr, double beta1, double beta2,
	double eps, double decay);
Optimizer sgd_new(const Model *m, double lr, double momentum);
/* what the kernels need to know of step t */
AdamWStep adamw_scalars(const OptimizerSettings *s, long t, double unscale);

#endif
