/* text_training.h: a model that learns a text byte by byte */
#ifndef CASES_TEXT_TRAINING_H
#define CASES_TEXT_TRAINING_H

#include "cases/text.h"
#include "train/step.h"

typedef struct TextTraining {
	Model *m;
	Optimizer adamw;
	const Text *text;
	Batch batch;
	double peak_lr;
	long steps;                      /* in all, for the schedule */
	uint64_t seed;                   /* of the windows */
} TextTraining;

/* takes a step on windows of the training part */
StepTime text_training_step(TextTraining *t, long step);
/* nats per byte of windows, whose number is a multiple of the batch; uses the
 * batch */
double   text_held_out_nats(TextTraining *t, Windows w);

#endif
