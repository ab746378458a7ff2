#define _GNU_SOURCE
#include "cases/text_training.h"

#include <math.h>

// set the learning rate of a step
static double learning_rate(const TextTraining *t, long step)
{
	long warmup = t->steps / 20 + 1;
	if (step < warmup)
		return t->peak_lr * (step + 1) / warmup;
	return t->peak_lr * (0.05 + 0.95 * 0.5 * (1
		+ cos(M_PI * (step - warmup) / (t->steps - warmup))));
}

// take a step on a text
StepTime text_training_step(TextTraining *t, long step)
{
	const Batch *b = &t->batch;
	text_windows(t->text, 0, t->text->ntrain, t->seed, step, b->B, b->T,
		b->tokens, b->targets);
	t->adamw.settings.lr = learning_rate(t, step);
	return timed_step(t->m, &t->adamw, b, MODE_TRAIN);
}

// measure the held-out loss
double text_held_out_nats(TextTraining *t, Windows w)
{
	const Batch *b = &t->batch;
	double sum = 0;
	for (size_t pass = 0; pass < w.n / b->B; pass++) {
		for (size_t i = 0; i < b->B; i++)
			text_window(t->text, text_held_out(t->text, w, pass * b->B + i),
				b->T, b->tokens + i * b->T, b->targets + i * b->T);
		sum += model_forward(t->m, b->tokens, b->targets, b->B, b->T, false);
	}
	return sum / (w.n / b->B);
}
